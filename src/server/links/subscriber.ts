/** A connection as rooms and queues see it, whichever door it came through. */
import type { Effect } from "effect"
import type { CodedError } from "#rpc/errors/codes"
import type { JsonObject } from "#rpc/rooms"
import type { PlayerCommand } from "#entities/room/messages"
import type { Frame } from "#server/platform/outbox"
import type { ReplyCallback } from "./entity-link.ts"

/** The line to the room a connection is in. */
export interface RoomHandle {
  readonly roomId: string
  /** Without `answered`, only a refusal comes back, as a warning. */
  send(command: PlayerCommand, answered?: ReplyCallback<JsonObject>): void
  request(command: PlayerCommand): Effect.Effect<JsonObject, CodedError>
  /** The connection is gone: its seat waits for the player's return. */
  disconnect(subscriber: Subscriber, replaced: boolean): void
}

export interface Subscriber {
  readonly connectionId: string
  readonly environmentId: string
  readonly playerId: string
  readonly displayName: string
  readonly relayOnly: boolean
  /** Something to be told now, in order. */
  readonly push: (frame: Frame) => void
  /** A frame without `rid` failed. */
  readonly warn: (error: CodedError) => void
  /** May the connection come into this room? Not when its player has given up the seat meanwhile. */
  readonly expects: (roomId: string) => boolean
  /** The connection has come into this room. */
  readonly seated: (line: RoomHandle) => void
  /** The seat in this room is gone, without the connection having asked. */
  readonly unseated: (roomId: string) => void
}
