/**
 * Rooms: client frames, events and the public list. One `Rpc` declares each frame. The JSON frame
 * decoder, the typed client, the frame tables of the API page and the native RPC endpoint derive from
 * it.
 *
 * Timestamps are ISO 8601 UTC, except `at`, which is Unix milliseconds.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { Rpc, RpcGroup } from "effect/rpc"
import { FeatureGate, PublishableKey, RequiredFeature, Requests } from "./auth.ts"
import {
  AlreadyInRoom,
  AlreadyMatching,
  CodeTaken,
  FeatureDisabled,
  FeatureUnavailable,
  HostOnly,
  InvalidFrame,
  ModeNotFound,
  NotInRoom,
  P2pRoomFull,
  PayloadTooLarge,
  PlayerBanned,
  PlayerRequired,
  RateLimited,
  ResumeExpired,
  RoomFull,
  RoomLocked,
  RoomNotFound,
  StateTooLarge,
  Unauthorized,
  Unavailable,
  wire
} from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { exceedsDepth } from "./json.ts"
import { rooms } from "./limits.ts"
import { underKey } from "./mounts.ts"
import { Operation } from "./operations.ts"
import { PageLimit } from "./pages.ts"
import { isStorable, Timestamp } from "./text.ts"
import { ChosenRoomCode, TypedCode } from "./typed-codes.ts"

const prototypeKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"])

/** Returns why a JSON value cannot be stored, with its path, or undefined. */
const firstProblem = (value: unknown, path: ReadonlyArray<string>): string | undefined => {
  if (typeof value === "number" && !Number.isFinite(value)) {
    return `The number at ${path.join(".")} is too large`
  }
  if (typeof value === "string" && !isStorable(value)) {
    return `The text at ${path.join(".")} must not have NUL characters or lone surrogates`
  }
  if (typeof value !== "object" || value === null) return undefined
  if (path.length > rooms.stateDepthMax) return `Expected at most ${rooms.stateDepthMax} levels`
  for (const [key, member] of Object.entries(value)) {
    if (!isStorable(key)) return "Keys must not have NUL characters or lone surrogates"
    if (prototypeKeys.has(key)) return `The key ${[...path, key].join(".")} is not allowed`
    const inner = firstProblem(member, [...path, key])
    if (inner !== undefined) return inner
  }
  return undefined
}

/**
 * JSON object that a client sends or receives. The schema refuses keys that could reach an object's
 * prototype at any depth, texts that Postgres cannot read as JSON, and nesting beyond 32 levels.
 */
export const JsonObject = Schema.Record(Schema.String, Schema.Unknown).check(
  Schema.makeFilter((members) => firstProblem(members, []))
)
export type JsonObject = typeof JsonObject.Type

/** A JSON object that a runner has accepted: a newer release with stricter rules reads it, too. */
export const AcceptedJsonObject = Schema.Record(Schema.String, Schema.Unknown)

/** JSON value of at most 64 levels. Deeper nesting would overflow the stack of the encoder. */
export const MessageData = Schema.Unknown.check(
  Schema.makeFilter((data) =>
    exceedsDepth(data, rooms.dataDepthMax)
      ? `Expected at most ${rooms.dataDepthMax} levels`
      : undefined
  )
)

const ShortText = Schema.String.check(Schema.isBetweenLength(1, 64))

/** The room in which the player now has a seat. */
export const RoomRef = Schema.Struct({ roomId: Schema.String, code: Schema.String })
export type RoomRef = typeof RoomRef.Type

const Done = Schema.Struct({})

/** Errors that any frame may answer beside its own. */
export const commonFrameErrors = [
  RateLimited,
  PlayerRequired,
  PlayerBanned,
  FeatureDisabled,
  FeatureUnavailable,
  InvalidFrame,
  Unauthorized,
  Unavailable
] as const

// Frames ---------------------------------------------------------------------------------------

/** Opens a room. The player takes the first seat and becomes the host. */
export const create = Rpc.make("create", {
  payload: {
    mode: ShortText,
    private: Schema.optionalKey(Schema.Boolean),
    maxPlayers: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: rooms.playersMax }))
    ),
    metadata: Schema.optionalKey(JsonObject),
    code: Schema.optionalKey(ChosenRoomCode),
    hostOnlyState: Schema.optionalKey(Schema.Boolean)
  },
  success: RoomRef,
  error: Schema.Union([
    ...commonFrameErrors,
    ModeNotFound,
    CodeTaken,
    AlreadyInRoom,
    AlreadyMatching,
    PayloadTooLarge
  ])
}).annotate(OpenApi.Summary, "Open a room and become its host")

/** Takes a seat in a room, by its id or code. */
export const join = Rpc.make("join", {
  payload: Schema.Struct({
    roomId: Schema.optionalKey(ShortText),
    code: Schema.optionalKey(TypedCode)
  }).check(
    Schema.makeFilter((frame) =>
      (frame.roomId === undefined) === (frame.code === undefined)
        ? "Give either roomId or code. The typed client has join(code) and join({ roomId })"
        : undefined
    )
  ),
  success: RoomRef,
  error: Schema.Union([
    ...commonFrameErrors,
    RoomNotFound,
    RoomFull,
    P2pRoomFull,
    RoomLocked,
    AlreadyInRoom,
    AlreadyMatching
  ])
}).annotate(OpenApi.Summary, "Join a room by its id or code")

/** Frees the seat of the player. */
export const leave = Rpc.make("leave", {
  success: Done,
  error: Schema.Union([...commonFrameErrors, NotInRoom])
}).annotate(OpenApi.Summary, "Give up the seat")

/** Returns to the reserved seat after a disconnect. */
export const resume = Rpc.make("resume", {
  payload: { roomId: ShortText },
  success: RoomRef,
  error: Schema.Union([...commonFrameErrors, ResumeExpired])
}).annotate(OpenApi.Summary, "Return to the reserved seat after a disconnect")

/** Sends a message to all other members, or only to those in `to`. */
export const send = Rpc.make("send", {
  payload: {
    type: Schema.String.check(Schema.isBetweenLength(1, rooms.typeMaxCharacters)),
    data: Schema.optionalKey(MessageData),
    to: Schema.optionalKey(
      Schema.Array(Schema.String).check(Schema.isMaxLength(rooms.sendTargetsMax))
    )
  },
  success: Schema.Struct({ delivered: Schema.optionalKey(Schema.Int) }),
  error: Schema.Union([...commonFrameErrors, NotInRoom, PayloadTooLarge])
}).annotate(OpenApi.Summary, "Send a message to all other members, or only to those in `to`")

/** Merges top-level keys into the room's state; null deletes a key. */
export const setState = Rpc.make("setState", {
  payload: { patch: JsonObject },
  success: Done,
  error: Schema.Union([...commonFrameErrors, NotInRoom, HostOnly, StateTooLarge])
}).annotate(OpenApi.Summary, "Merge keys into the room's state; null deletes")

/** Merges top-level keys into the player's own state; null deletes a key. */
export const setMyState = Rpc.make("setMyState", {
  payload: { patch: JsonObject },
  success: Done,
  error: Schema.Union([...commonFrameErrors, NotInRoom, StateTooLarge])
}).annotate(OpenApi.Summary, "Merge keys into the player's own state; null deletes")

/** Locks the room to new players, or unlocks it. */
export const lock = Rpc.make("lock", {
  payload: { locked: Schema.Boolean },
  success: Done,
  error: Schema.Union([...commonFrameErrors, NotInRoom, HostOnly])
}).annotate(OpenApi.Summary, "Lock the room to new players, or unlock it")

export class RoomFrames extends RpcGroup.make(
  create,
  join,
  leave,
  resume,
  send,
  setState,
  setMyState,
  lock
) {}

// Events ---------------------------------------------------------------------------------------

export const Transport = Schema.Literals(["server", "p2p"])

/** Member of a room; `state` is the state that it set with `setMyState`. */
export const RoomPlayer = Schema.Struct({
  id: Schema.String,
  displayName: Schema.String,
  connected: Schema.Boolean,
  joinedAt: Timestamp,
  state: JsonObject
})
export type RoomPlayer = typeof RoomPlayer.Type

/** A room as its members see it; `version` counts the changes of `state`. */
export const RoomSnapshot = Schema.Struct({
  id: Schema.String,
  code: Schema.String,
  mode: Schema.String,
  private: Schema.Boolean,
  locked: Schema.Boolean,
  transport: Transport,
  hostId: Schema.NullOr(Schema.String),
  hostOnlyState: Schema.Boolean,
  maxPlayers: Schema.Int,
  metadata: JsonObject,
  state: JsonObject,
  version: Schema.Int,
  createdAt: Timestamp,
  players: Schema.Array(RoomPlayer),
  p2p: Schema.optionalKey(Schema.Struct({ relayOnly: Schema.Boolean, maxPlayers: Schema.Int }))
})
export type RoomSnapshot = typeof RoomSnapshot.Type

export const LeaveReason = Schema.Literals(["left", "timeout", "banned", "deleted"])
export type LeaveReason = typeof LeaveReason.Type

export const CloseReason = Schema.Literals(["empty", "idle", "feature_disabled", "lost"])
export type CloseReason = typeof CloseReason.Type

/** The kind of a WebRTC signal. */
export const SignalKind = Schema.Literals(["offer", "answer", "candidate", "restart"])
export type SignalKind = typeof SignalKind.Type

/** A player whose display name has changed. */
export const PlayerName = Schema.Struct({ id: Schema.String, displayName: Schema.String })

const event = <const T extends string, const Fields extends Schema.Struct.Fields>(
  t: T,
  fields: Fields
) => Schema.Struct({ t: Schema.Literal(t), ...fields })

/** Events of a room. All members receive them in the same order. */
export const RoomEvent = Schema.Union([
  event("room_joined", {
    room: RoomSnapshot,
    playerId: Schema.String,
    resumed: Schema.Boolean
  }),
  event("player_joined", { player: RoomPlayer }),
  event("player_left", { playerId: Schema.String, reason: LeaveReason }),
  event("player_disconnected", { playerId: Schema.String, graceUntil: Timestamp }),
  event("player_reconnected", { playerId: Schema.String }),
  event("player_updated", { player: PlayerName }),
  event("host_changed", {
    hostId: Schema.String,
    previousHostId: Schema.NullOr(Schema.String),
    reason: Schema.Literals(["left", "timeout", "banned", "deleted"])
  }),
  event("state", { patch: JsonObject, from: Schema.String, version: Schema.Int }),
  event("player_state", { playerId: Schema.String, patch: JsonObject }),
  event("message", {
    from: Schema.String,
    type: Schema.String,
    data: Schema.optionalKey(Schema.Unknown),
    at: Schema.Int
  }),
  event("locked", { locked: Schema.Boolean }),
  event("signal", {
    from: Schema.String,
    kind: SignalKind,
    data: Schema.optionalKey(Schema.Unknown),
    gen: Schema.optionalKey(Schema.Int)
  }),
  event("room_closed", { roomId: Schema.String, reason: CloseReason })
])
export type RoomEvent = typeof RoomEvent.Type

// List -----------------------------------------------------------------------------------------

/** A room in `GET /v1/rooms`; `players` is a count. */
export const PublicRoom = Schema.Struct({
  id: Schema.String,
  code: Schema.String,
  mode: Schema.String,
  players: Schema.Int,
  maxPlayers: Schema.Int,
  metadata: JsonObject,
  createdAt: Timestamp
}).annotate({ identifier: "PublicRoom", description: "An open room. `players` is a count." })
export type PublicRoom = typeof PublicRoom.Type

const roomsOf = <Id extends string>(id: Id) =>
  group(
    id,
    "games",
    "Rooms",
    "The list of open rooms. Everything else in rooms happens over the realtime socket."
  ).add(
    HttpApiEndpoint.get("list", "/rooms", {
      query: { mode: Schema.optionalKey(Schema.String), limit: Schema.optionalKey(PageLimit) },
      success: Schema.Struct({ rooms: Schema.Array(PublicRoom) }).annotate({
        identifier: "PublicRoomList",
        description: "Public, unlocked rooms with a free seat, newest first."
      }),
      error: wire(ModeNotFound)
    })
      .annotate(OpenApi.Summary, "List open public rooms")
      .annotate(RequiredFeature, "multiplayer")
  )

/** `/v1/rooms`: public, unlocked rooms with a free seat, newest first. The list is at most a second old. */
export class RoomsApi extends roomsOf("rooms")
  .prefix("/v1")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(PublishableKey) {}

/** `/v1/admin/rooms` in the process: the same list for functions. */
export class ServerRoomsApi extends underKey(
  roomsOf("serverRooms").annotateEndpoints(Operation, { functions: true }).middleware(FeatureGate)
) {}

export const roomsFeature = feature({
  word: "rooms",
  groups: [RoomsApi],
  inProcess: [ServerRoomsApi],
  playerLimits: ["code"],
  exported: {
    /** Rooms with a seat of the player. */
    rooms: Schema.Array(Schema.String)
  }
})
