/**
 * What can be asked of a room (design: one volatile call per room, node and turn; one stream per node
 * and room). Commands and items travel as one JSON text per batch, decoded once.
 */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { CodeTaken, RoomLocked, RoomNotFound, Unavailable } from "#rpc/errors/codes"
import { HeldSeat } from "#rpc/realtime"
import { CloseReason, JsonObject, RoomRef, SignalKind, Transport } from "#rpc/rooms"

/** The room was there, and a crash may have taken its row away: its last state may yet be written. */
export class RoomMissing extends Schema.TaggedError<RoomMissing>()("room_missing", {
  message: Schema.String
}) {}

const Attachment = { node: Schema.String, connectionId: Schema.String }

export const JoiningPlayerSchema = Schema.Struct({
  playerId: Schema.String,
  displayName: Schema.String,
  relayOnly: Schema.Boolean,
  ...Attachment
})

const command = <const T extends string, const Fields extends Schema.Struct.Fields>(
  t: T,
  fields: Fields
) => Schema.Struct({ t: Schema.Literal(t), playerId: Schema.String, ...fields })

/** What a gateway may ask for one of its players. */
export const PlayerCommand = Schema.Union([
  command("join", { displayName: Schema.String, relayOnly: Schema.Boolean, ...Attachment }),
  command("resume", { relayOnly: Schema.Boolean, ...Attachment }),
  command("leave", {
    reason: Schema.Literals(["left", "banned", "deleted"]),
    /** The connection that asks; one that was replaced meanwhile has no say any more. */
    connectionId: Schema.optionalKey(Schema.String)
  }),
  command("send", {
    type: Schema.String,
    data: Schema.optionalKey(Schema.Unknown),
    to: Schema.optionalKey(Schema.Array(Schema.String))
  }),
  command("setState", { patch: JsonObject }),
  command("setMyState", { patch: JsonObject }),
  command("lock", { locked: Schema.Boolean }),
  command("signal", {
    to: Schema.String,
    kind: SignalKind,
    data: Schema.optionalKey(Schema.Unknown),
    gen: Schema.optionalKey(Schema.Int)
  }),
  command("iceTransport", {}),
  command("relay", { relayOnly: Schema.Boolean }),
  command("disconnect", { connectionId: Schema.String, replaced: Schema.Boolean })
])
export type PlayerCommand = typeof PlayerCommand.Type

/** A command and the number its reply carries; 0 wants no reply unless it fails. */
export const RoomInput = Schema.Struct({ seq: Schema.Int, command: PlayerCommand })
export type RoomInput = typeof RoomInput.Type

const item = <const K extends string, const Fields extends Schema.Struct.Fields>(
  kind: K,
  fields: Fields
) => Schema.Struct({ kind: Schema.Literal(kind), ...fields })

/** What a room tells a node: events for its members, turns of membership, replies. */
export const RoomOutput = Schema.Union([
  item("event", {
    to: Schema.NullOr(Schema.Array(Schema.String)),
    except: Schema.NullOr(Schema.String),
    frame: Schema.String
  }),
  item("enter", { player: Schema.String, connection: Schema.String, frame: Schema.String }),
  item("exit", { player: Schema.String }),
  item("reply", { seq: Schema.Int, data: JsonObject }),
  item("refuse", {
    seq: Schema.Int,
    player: Schema.String,
    error: Schema.Struct({
      code: Schema.String,
      message: Schema.String,
      details: Schema.optionalKey(Schema.Unknown)
    })
  }),
  item("end", {})
])
export type RoomOutput = typeof RoomOutput.Type

/** A batch of items, and the activation of the room that tells them. */
export const RoomBatch = Schema.Struct({
  epoch: Schema.Int,
  items: Schema.fromJsonString(Schema.Array(RoomOutput))
})
export type RoomBatch = typeof RoomBatch.Type

/** What a room is opened with and keeps: the mode's settings as they were then. */
export const roomTerms = {
  environmentId: Schema.String,
  mode: Schema.String,
  private: Schema.Boolean,
  transport: Transport,
  p2p: Schema.NullOr(Schema.Struct({ relayOnly: Schema.Boolean, maxPlayers: Schema.Int })),
  hostOnlyState: Schema.Boolean,
  maxPlayers: Schema.Int,
  metadata: JsonObject,
  graceSeconds: Schema.Int,
  matched: Schema.Boolean
}

/** How a room is opened, and who sits in it from the start; without a code it gets one. */
export const OpenRoom = Schema.Struct({
  ...roomTerms,
  code: Schema.NullOr(Schema.String),
  joiningPlayers: Schema.Array(JoiningPlayerSchema)
})
export type OpenRoom = typeof OpenRoom.Type

/** A member that a gateway still holds after the room moved. */
export const Present = Schema.Struct({
  playerId: Schema.String,
  displayName: Schema.String,
  relayOnly: Schema.Boolean,
  connectionId: Schema.String
})

export const Room = Entity.make("Room", [
  /** Opens the room; opening an open room answers the same. */
  Rpc.make("Open", {
    payload: { open: Schema.fromJsonString(OpenRoom) },
    success: RoomRef,
    error: Schema.Union([CodeTaken, Unavailable])
  }),
  /** Seats for joiningPlayers, as many as fit: matchmaking fills a room. */
  Rpc.make("Seat", {
    payload: { joiningPlayers: Schema.Array(JoiningPlayerSchema) },
    success: Schema.Struct({
      ...RoomRef.fields,
      seated: Schema.Array(Schema.String),
      free: Schema.Int
    }),
    error: Schema.Union([RoomNotFound, RoomLocked, Unavailable])
  }),
  /** The commands of one node in one turn; replies come through `Watch`. */
  Rpc.make("Input", {
    payload: {
      node: Schema.String,
      /** The attachment that this is from: what an earlier one has sent comes too late. */
      watch: Schema.Int,
      /** Numbers the calls through it; the same number again is a call that was sent twice. */
      call: Schema.Int,
      inputs: Schema.fromJsonString(Schema.Array(RoomInput))
    },
    error: Schema.Union([RoomNotFound, Unavailable])
  }),
  /** Everything the room tells this node, from the first batch (empty: attached) to its end. */
  Rpc.make("Watch", {
    payload: {
      environmentId: Schema.String,
      node: Schema.String,
      /** Where the node's lines end, if others can reach it (see `RoomLines`). */
      address: Schema.NullOr(Schema.String),
      /** Numbers the node's attachments; the same number again is a call that was sent twice. */
      watch: Schema.Int,
      /** The activation last heard, 0 for none. */
      epoch: Schema.Int,
      present: Schema.Array(Present)
    },
    success: RoomBatch,
    error: Schema.Union([RoomMissing, RoomNotFound, Unavailable]),
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true),
  /** Ends the room for its members. */
  Rpc.make("Close", { payload: { reason: CloseReason }, error: Unavailable }),
  /** The seat a player has here, if any. */
  Rpc.make("Peek", {
    payload: { playerId: Schema.String },
    success: Schema.NullOr(HeldSeat),
    error: Unavailable
  }),
  /** The room has a row that is overdue: it wakes, and looks again if it knows of none. */
  Rpc.make("Wake", { error: Unavailable })
])
