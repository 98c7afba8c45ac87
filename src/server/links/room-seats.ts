/**
 * Look-up of the seats that rooms keep. A room that lives on this node needs no call. The members
 * of a room come back together, after a deploy for instance: one call wakes the room, and the
 * others wait for it.
 */
import { Effect } from "effect"
import type { CodedError } from "#rpc/errors/codes"
import type { HeldSeat } from "#rpc/realtime"
import type { RoomActor } from "#entities/room/actor"

/** The seat of a player in a room, as the room knows it. */
export type PeekSeat = (
  roomId: string,
  playerId: string
) => Effect.Effect<HeldSeat | null, CodedError>

/**
 * Makes the look-up. `callRoom` asks a room wherever it lives; `local` are the rooms on this node.
 */
export const makePeekSeat = (
  callRoom: PeekSeat,
  local: ReadonlyMap<string, Pick<RoomActor, "peek">>
): PeekSeat => {
  /** Callers that wait for the first call to a room, by room. At most one per connection. */
  const waking = new Map<string, Set<() => void>>()

  const ask: PeekSeat = (roomId, playerId) =>
    Effect.suspend(() => {
      const seat = local.get(roomId)?.peek(playerId)
      return seat === undefined ? callRoom(roomId, playerId) : Effect.succeed(seat)
    })

  const wake: PeekSeat = (roomId, playerId) => {
    const waiting = new Set<() => void>()
    waking.set(roomId, waiting)
    const done = Effect.sync(() => {
      waking.delete(roomId)
      for (const resume of waiting) resume()
    })
    return Effect.ensuring(ask(roomId, playerId), done)
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
      return Effect.andThen(woken, ask(roomId, playerId))
    })
}
