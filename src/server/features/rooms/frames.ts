/**
 * Rooms from a gateway's side (spec section 4.4): opening, joining, returning, leaving, and the list.
 * Each first asks the player's session, the judge of where a player may be, then the room.
 */
import { DateTime, Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import { findMode, type Mode } from "#rpc/config-document/multiplayer"
import {
  type CodedError,
  InvalidFrame,
  ModeNotFound,
  NotInRoom,
  PayloadTooLarge,
  ResumeExpired,
  RoomNotFound
} from "#rpc/errors/codes"
import { type EnvironmentId, newId } from "#rpc/ids"
import { rooms as limits, throttles as guesses } from "#rpc/limits"
import type { JsonObject, PublicRoom } from "#rpc/rooms"
import { RoomRepository } from "#sql/rooms"
import type { OpenRoom, PlayerCommand } from "#entities/room/messages"
import { jsonBytes } from "#entities/room/json-state"
import { Throttles } from "#server/platform/throttles"
import type { FramePayload } from "#server/links/frames"
import { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import { callEntityWithRetry, claim, forgetUnconfirmed, release } from "#server/links/reservations"
import type { RoomHandle } from "#server/links/subscriber"
import { Configs } from "../config/service.ts"

/** How a room of a mode is opened. */
export const roomOfMode = (environmentId: string, mode: Mode): OpenRoom => ({
  environmentId,
  mode: mode.key,
  private: false,
  transport: mode.transport,
  p2p:
    mode.transport === "p2p"
      ? { relayOnly: mode.p2p.relayOnly, maxPlayers: mode.p2p.maxPlayers }
      : null,
  hostOnlyState: false,
  maxPlayers: mode.maxPlayers,
  metadata: {},
  graceSeconds: mode.reconnectSeconds,
  matched: false,
  code: null,
  joiningPlayers: []
})

/** The mode of a key, as the environment's config has it now. */
export const modeOf = Effect.fnUntraced(function* (environmentId: EnvironmentId, key: string) {
  const configs = yield* Configs
  const { config } = yield* configs.current(environmentId)
  return findMode(config, key) ?? (yield* new ModeNotFound())
})

const roomRef = (data: JsonObject) => ({
  roomId: String(data["roomId"]),
  code: String(data["code"])
})

/** The player of a connection, as a room seats it. */
export const joiningPlayerOf = (node: string, connection: PlayerConnection) => ({
  playerId: connection.playerId,
  displayName: connection.displayName,
  relayOnly: connection.relayOnly,
  node,
  connectionId: connection.connectionId
})

/** Comes into a room in which the player may (or does) have a seat. */
export const enterRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  roomId: string,
  t: "join" | "resume" = "join"
) {
  const hub = yield* Hub
  const command = { t, ...joiningPlayerOf(hub.node, connection) } as const
  // In one step: a line that nobody uses may end at any moment.
  const entered = Effect.callback<JsonObject, CodedError>((resume) =>
    hub.room(connection.environmentId, roomId).send(command, (answer) => {
      resume(answer.ok ? Effect.succeed(answer.data) : Effect.fail(answer.error))
    })
  )
  return roomRef(yield* entered)
})

/** The seat of a room that was not entered: one that was surely not taken is given back. */
export const notEntered = (connection: PlayerConnection, roomId: string, error: CodedError) =>
  Effect.suspend(() => {
    if (connection.room?.roomId === roomId) return Effect.void
    if (error._tag !== "unavailable") return release(connection, { kind: "seat", roomId })
    return Effect.sync(() => forgetUnconfirmed(connection, roomId))
  })

/** Does something under the claim of a seat. */
const claimed = Effect.fnUntraced(function* <A, R>(
  connection: PlayerConnection,
  roomId: string,
  effect: Effect.Effect<A, CodedError, R>
) {
  const place = { kind: "seat", roomId } as const
  yield* claim(connection, place)
  return yield* Effect.tapError(effect, (error) => notEntered(connection, roomId, error))
})

/** Opens a room and takes its first seat. */
export const createRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"create">
) {
  const hub = yield* Hub
  const mode = yield* modeOf(connection.environmentId, frame.mode)
  const metadata = frame.metadata ?? {}
  if (jsonBytes(metadata) > limits.metadataMaxBytes) {
    return yield* new PayloadTooLarge({ details: { limit: limits.metadataMaxBytes } })
  }
  const maxPlayers = frame.maxPlayers ?? mode.maxPlayers
  if (maxPlayers > mode.maxPlayers) {
    const message = `Expected at most ${mode.maxPlayers}, the mode's maxPlayers`
    return yield* new InvalidFrame({
      message,
      details: { issues: [{ path: "maxPlayers", message }] }
    })
  }
  const roomId = yield* newId.room
  const open: OpenRoom = {
    ...roomOfMode(connection.environmentId, mode),
    private: frame.private ?? false,
    hostOnlyState: frame.hostOnlyState ?? false,
    maxPlayers,
    metadata,
    code: frame.code?.toUpperCase() ?? null,
    joiningPlayers: [joiningPlayerOf(hub.node, connection)]
  }
  const opened = callEntityWithRetry(hub.roomClient(roomId).Open({ open }))
  return yield* claimed(connection, roomId, Effect.andThen(opened, enterRoom(connection, roomId)))
})

/** Ids and codes have only these; anything else need not be looked for. */
const isReference = (text: string): boolean => /^\w+$/.test(text)

/** The room of a code. Who shares an address may meet by codes at will; only wrong ones count. */
const findByCode = Effect.fnUntraced(function* (connection: PlayerConnection, code: string) {
  const rows = yield* RoomRepository
  const throttles = yield* Throttles
  const { address, environmentId, playerId } = connection
  yield* throttles.take(guesses.roomCodesPerPlayer, `code:${playerId}`)
  if (address === undefined) return yield* rows.findByCode(environmentId, code)
  const from = `codes:${environmentId}:${address}`
  yield* throttles.take(guesses.wrongRoomCodesPerAddress, from)
  const found = yield* rows.findByCode(environmentId, code)
  if (Option.isSome(found)) yield* throttles.refund(from)
  return found
})

/** Only rooms that are there are woken: a made-up id never costs an entity. */
const findRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  { code, roomId = "" }: FramePayload<"join">
) {
  const hub = yield* Hub
  const rows = yield* RoomRepository
  const { environmentId } = connection
  if (!isReference(code ?? roomId)) return Option.none<string>()
  if (code !== undefined) return yield* findByCode(connection, code.toUpperCase())
  if (hub.rooms.get(roomId)?.environmentId === environmentId) return Option.some(roomId)
  return yield* rows.findById(environmentId, roomId)
})

/** Takes a seat in the room of an id or code. */
export const joinRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  frame: FramePayload<"join">
) {
  const roomId = yield* findRoom(connection, frame)
  if (Option.isNone(roomId)) return yield* new RoomNotFound()
  return yield* claimed(connection, roomId.value, enterRoom(connection, roomId.value))
})

const notKept: ReadonlySet<string> = new Set([
  "already_in_room",
  "already_matching",
  "room_not_found"
])

/** Returns to the seat that was kept; there is none in any other room. */
export const resumeRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  roomId: string
) {
  const found = yield* findRoom(connection, { roomId })
  if (Option.isNone(found)) return yield* new ResumeExpired()
  return yield* Effect.mapError(
    claimed(connection, roomId, enterRoom(connection, roomId, "resume")),
    (error) => (notKept.has(error._tag) ? new ResumeExpired() : error)
  )
})

/** Asks the room that the connection is in; one that is gone by now is no room to be in. */
export const askRoom = (room: RoomHandle, command: PlayerCommand) =>
  Effect.mapError(room.request(command), (error) =>
    error._tag === "room_not_found" ? new NotInRoom() : error
  )

/** Gives the seat up; in a cluster no failure brings it back once that is answered. */
export const leaveRoom = Effect.fnUntraced(function* (
  connection: PlayerConnection,
  room: RoomHandle
) {
  const { connectionId, playerId } = connection
  // Nothing to give up: the room has not told of an earlier answer, or is over.
  yield* askRoom(room, { t: "leave", playerId, connectionId, reason: "left" }).pipe(
    Effect.catchTag("not_in_room", () => Effect.void)
  )
  connection.room = undefined
  yield* release(connection, { kind: "seat", roomId: room.roomId })
  return {}
})

/** `GET /v1/rooms`. */
export const RoomsHttp = HttpApiBuilder.group(
  Api,
  "rooms",
  Effect.fn(function* (handlers) {
    const rows = yield* RoomRepository
    const configs = yield* Configs
    return handlers.handle(
      "list",
      Effect.fn("Rooms.list")(function* ({ query }) {
        const { environmentId } = yield* CurrentEnvironment
        if (query.mode !== undefined) {
          yield* Effect.provideService(modeOf(environmentId, query.mode), Configs, configs)
        }
        const listed = yield* rows.list(
          environmentId,
          query.mode,
          query.limit ?? limits.listDefault
        )
        const rooms: ReadonlyArray<PublicRoom> = listed.map((room) => ({
          ...room,
          createdAt: DateTime.formatIso(room.createdAt)
        }))
        return { rooms }
      })
    )
  })
)
