/**
 * Looks up the seats that rooms keep. A room that lives on this node is asked without a call. The members
 * of a room come back together, after a deploy for instance: one call wakes the room, and the others wait
 * for it.
 */
import { Effect } from "effect"
import type { CodedError } from "#rpc/errors/codes"
import type { HeldSeat } from "#rpc/realtime"
import type { LocalRooms } from "#entities/room/entity"
import { callEntityWithRetry } from "./entity-call.ts"
import type { RoomClient } from "./room-link.ts"

/** The seat of a player in a room, as the room knows it. */
export type PeekSeat = (
  roomId: string,
  playerId: string
) => Effect.Effect<HeldSeat | null, CodedError>

export const makePeekSeat = (client: RoomClient, local: LocalRooms["Service"]): PeekSeat => {
  /** Callers that wait for the first call to a room, by room. At most one per connection. */
  const waking = new Map<string, Set<() => void>>()

  const call: PeekSeat = (roomId, playerId) =>
    Effect.suspend(() => {
      const seat = local.actors.get(roomId)?.peek(playerId)
      if (seat !== undefined) return Effect.succeed(seat)
      return callEntityWithRetry(client(roomId).Peek({ playerId }))
    })

  const wake: PeekSeat = (roomId, playerId) => {
    const waiting = new Set<() => void>()
    waking.set(roomId, waiting)
    const done = Effect.sync(() => {
      waking.delete(roomId)
      for (const resume of waiting) resume()
    })
    return Effect.ensuring(call(roomId, playerId), done)
  }

  return (roomId, playerId) =>
    Effect.suspend(() => {
      const waiting = waking.get(roomId)
      if (waiting === undefined) return wake(roomId, playerId)
      const woken = Effect.callback<void>((resume) => {
        const wakeUp = (): void => resume(Effect.void)
        waiting.add(wakeUp)
        return Effect.sync(() => void waiting.delete(wakeUp))
      })
      return Effect.andThen(woken, call(roomId, playerId))
    })
}
