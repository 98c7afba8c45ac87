/**
 * Room messages between nodes over runner links. One link between two nodes carries the commands and
 * outputs of all rooms with members on both, in one batch per flush. The `Watch` stream of a remote room
 * then only shows whether the room still lives there.
 */
import { Context, Predicate, Schema } from "effect"
import { RoomInput, RoomOutput } from "./messages.ts"

const { isObject, isString } = Predicate

/** A list schema with a fast check for the most frequent element; the schema decides the others. */
const listOf = <A>(schema: Schema.Codec<A>, isFrequent: (value: unknown) => boolean) => {
  const matches = Schema.is(schema)
  return Schema.declare(
    (value): value is ReadonlyArray<A> =>
      Array.isArray(value) && value.every((element) => isFrequent(element) || matches(element))
  )
}

/**
 * Returns whether the value is an event, the most frequent output. A schema takes many times as
 * long.
 */
const isEvent = (value: unknown): boolean =>
  isObject(value) &&
  value["kind"] === "event" &&
  isString(value["frame"]) &&
  (value["to"] === null || (Array.isArray(value["to"]) && value["to"].every(isString))) &&
  (value["except"] === null || isString(value["except"])) &&
  !Object.hasOwn(value, "without")

/** Returns whether the value is a message to all others, the most frequent input. */
const isSend = (value: unknown): boolean =>
  isObject(value) &&
  Number.isSafeInteger(value["seq"]) &&
  isObject(value["command"]) &&
  value["command"]["t"] === "send" &&
  isString(value["command"]["playerId"]) &&
  isString(value["command"]["type"]) &&
  !Object.hasOwn(value["command"], "to")

/** A node's commands for a room. */
export const RemoteRoomInputs = Schema.Struct({
  room: Schema.String,
  node: Schema.String,
  /** The attachment that sent this; the room ignores commands of an earlier one. */
  watch: Schema.Int,
  inputs: listOf(RoomInput, isSend)
})
export type RemoteRoomInputs = typeof RemoteRoomInputs.Type

/** A room's outputs for a node; `from` is the address of the room's node. */
export const RemoteRoomOutputs = Schema.Struct({
  room: Schema.String,
  epoch: Schema.Int,
  /** The attachment that this is for; the node ignores outputs for an earlier one. */
  watch: Schema.Int,
  from: Schema.String,
  items: listOf(RoomOutput, isEvent)
})
export type RemoteRoomOutputs = typeof RemoteRoomOutputs.Type

/** Sends room messages to other nodes, in order per node. */
export interface RemoteRooms {
  /** The address of this node for links; null on a single node. */
  readonly address: string | null
  /** Calls `onLost` if the message may not have arrived. */
  readonly send: (
    to: string,
    message: RemoteRoomInputs | RemoteRoomOutputs,
    onLost: () => void
  ) => void
}

export const RemoteRooms = Context.Reference<RemoteRooms>("entities/room/remote/RemoteRooms", {
  defaultValue: () => ({
    address: null,
    send: (_to, _message, onLost) => onLost()
  })
})
