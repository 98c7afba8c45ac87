/**
 * What nodes tell each other about rooms: one line between two nodes carries the commands and items
 * of all rooms that have members on both, one batch a turn. The `Watch` stream of a remote room is
 * then only the sign of life.
 */
import { Context, Predicate, Schema } from "effect"
import { RoomInput, RoomOutput } from "./messages.ts"

const { isObject, isString } = Predicate

/** A list whose elements are mostly plain; what is not plainly one is the schema's to decide. */
const listOf = <A>(schema: Schema.Codec<A>, isPlain: (value: unknown) => boolean) => {
  const isOne = Schema.is(schema)
  return Schema.declare(
    (value): value is ReadonlyArray<A> =>
      Array.isArray(value) && value.every((element) => isPlain(element) || isOne(element))
  )
}

/** Most of what a line carries is an event. A schema takes many times as long to say so. */
const isEvent = (value: unknown): boolean =>
  isObject(value) &&
  value["kind"] === "event" &&
  isString(value["frame"]) &&
  (value["to"] === null || (Array.isArray(value["to"]) && value["to"].every(isString))) &&
  (value["except"] === null || isString(value["except"]))

/** The same of a message to all others, the other way. */
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
  /** The attachment that this is from: what an earlier one has sent comes too late. */
  watch: Schema.Int,
  inputs: listOf(RoomInput, isSend)
})
export type RemoteRoomInputs = typeof RemoteRoomInputs.Type

/** What a room tells a node; `from` is the line that leads back. */
export const RemoteRoomOutputs = Schema.Struct({
  room: Schema.String,
  epoch: Schema.Int,
  /** The attachment that this is for: what is meant for an earlier one comes too late. */
  watch: Schema.Int,
  from: Schema.String,
  items: listOf(RoomOutput, isEvent)
})
export type RemoteRoomOutputs = typeof RemoteRoomOutputs.Type

/** The lines that begin at this node. Each keeps what it is given in order. */
export interface RemoteRooms {
  /** Where the lines of other nodes end here; null when there are no other nodes. */
  readonly address: string | null
  /** `lost` is called when it did not arrive, or may not have. */
  readonly sendInputs: (to: string, inputs: RemoteRoomInputs, lost: () => void) => void
  readonly sendOutputs: (to: string, items: RemoteRoomOutputs, lost: () => void) => void
}

export const RemoteRooms = Context.Reference<RemoteRooms>("entities/room/remote/RemoteRooms", {
  defaultValue: () => ({
    address: null,
    sendInputs: (_to, _inputs, lost) => lost(),
    sendOutputs: (_to, _items, lost) => lost()
  })
})
