/** The calls of the room entity. A node makes one `Input` call per room and flush, and one `Watch`. */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { CodeTaken, RoomLocked, RoomNotFound, Unavailable } from "#rpc/errors/codes"
import { HeldSeat } from "#rpc/realtime"
import { CloseReason } from "#rpc/rooms/events"
import { RoomRef } from "#rpc/rooms/frames"
import { attachment, inputsOf } from "../messages.ts"
import { JoiningPlayerSchema, OpenRoom, PresentMember, RoomBatch, RoomInput } from "./messages.ts"

/**
 * Error for a room that existed, but whose row is missing. After a crash of Postgres the last owner
 * may still write the row again.
 */
export class RoomMissing extends Schema.TaggedError<RoomMissing>()("room_missing", {
  message: Schema.String
}) {}

export const Room = Entity.make("Room", [
  /** Opens the room; idempotent. */
  Rpc.make("Open", {
    payload: { open: Schema.fromJsonString(OpenRoom) },
    success: RoomRef,
    error: Schema.Union([CodeTaken, Unavailable])
  }),
  /** Seats as many matched players as fit. */
  Rpc.make("Seat", {
    payload: { joiningPlayers: Schema.Array(JoiningPlayerSchema) },
    success: Schema.Struct({
      ...RoomRef.fields,
      seated: Schema.Array(Schema.String),
      free: Schema.Int
    }),
    error: Schema.Union([RoomNotFound, RoomLocked, Unavailable])
  }),
  /** Commands of one node; the replies arrive through `Watch`. */
  Rpc.make("Input", {
    payload: inputsOf(RoomInput),
    error: Schema.Union([RoomNotFound, Unavailable])
  }),
  /** Attaches a node and streams the room's outputs to it. An empty batch confirms the attachment. */
  Rpc.make("Watch", {
    payload: {
      ...attachment,
      environmentId: Schema.String,
      /** Address of the node's runner link if other runners can reach it (see `RemoteRooms`). */
      address: Schema.NullOr(Schema.String),
      present: Schema.Array(PresentMember)
    },
    success: RoomBatch,
    error: Schema.Union([RoomMissing, RoomNotFound, Unavailable]),
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true),
  /** Closes the room. */
  Rpc.make("Close", { payload: { reason: CloseReason }, error: Schema.Union([Unavailable]) }),
  /** Returns the player's seat in this room, or null. */
  Rpc.make("Peek", {
    payload: { playerId: Schema.String },
    success: Schema.NullOr(HeldSeat),
    error: Schema.Union([Unavailable])
  }),
  /** Activates a room whose row is overdue; an activation without state reads its row again. */
  Rpc.make("Wake", { error: Schema.Union([Unavailable]) })
])
