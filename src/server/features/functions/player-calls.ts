/**
 * Calls and sockets of functions that players have open on this runner. They end with a ban or
 * deletion of the player, or a revocation of its session, even if this runner missed the
 * invalidation.
 */
import { Context, DateTime, Effect, Layer, Stream } from "effect"
import type { PlayerCaller } from "#rpc/auth"
import { type PlayerBanned, SessionRevoked } from "#rpc/errors/codes"
import { Multimap } from "#entities/multimap"
import { makePendingChanges } from "#server/platform/pending-changes"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { Sessions } from "../sessions/service.ts"

/** End reason of a player's call. */
export type CallerEnded = PlayerBanned | SessionRevoked

interface OpenCall {
  readonly caller: PlayerCaller
  readonly since: DateTime.Utc
  /** Ends the call with the reason. */
  readonly cut: (error: CallerEnded) => void
}

const keyOf = ({ environmentId, playerId }: { environmentId: string; playerId: string }): string =>
  `${environmentId}/${playerId}`

/** Concurrent look-ups of players, when any of them may have changed. */
const concurrency = 100

const deleted = new SessionRevoked({ message: "This player has been deleted." })

/** Ends the calls of a player that lost access. */
const makeApply = Effect.gen(function* () {
  const sessions = yield* Sessions
  const statuses = yield* PlayerStatusCache
  const endOf = Effect.fnUntraced(function* ({ caller, since }: OpenCall) {
    const { environmentId, playerId, sessionId } = caller
    const status = yield* statuses.get(environmentId, playerId)
    if (status === undefined) return deleted
    if (status.banned !== undefined) return status.banned
    if (sessionId === undefined) return undefined
    const revokedAt = yield* sessions.revokedAt(environmentId, sessionId)
    const goesOn = revokedAt === undefined || DateTime.isLessThan(revokedAt, since)
    return goesOn ? undefined : new SessionRevoked()
  })
  return (calls: ReadonlyArray<OpenCall>) =>
    Effect.forEach(
      calls,
      (call) =>
        Effect.map(endOf(call), (error) => {
          if (error !== undefined) call.cut(error)
        }),
      { discard: true }
    )
})

export class PlayerCalls extends Context.Service<
  PlayerCalls,
  {
    /** Watches a call. The caller ends the watch with the returned function. */
    readonly watch: (
      caller: PlayerCaller,
      cut: (error: CallerEnded) => void
    ) => Effect.Effect<() => void>
  }
>()("server/features/functions/player-calls/PlayerCalls") {
  static readonly layer = Layer.effect(
    PlayerCalls,
    Effect.gen(function* () {
      const statuses = yield* PlayerStatusCache
      const apply = yield* makeApply
      const applyUntilDone = yield* makePendingChanges
      const byPlayer = new Multimap<string, OpenCall>()
      const check = (key: string) =>
        byPlayer.has(key)
          ? applyUntilDone(
              key,
              Effect.suspend(() => apply(byPlayer.get(key)))
            )
          : Effect.void
      const checkAll = Effect.suspend(() =>
        Effect.forEach(Array.from(byPlayer.keys), check, { concurrency, discard: true })
      )
      yield* statuses.changes.pipe(
        Stream.runForEach((changed) => (changed === "all" ? checkAll : check(keyOf(changed)))),
        Effect.forkScoped
      )
      return PlayerCalls.of({
        watch: (caller, cut) =>
          Effect.map(DateTime.now, (since) => {
            const call = { caller, since, cut }
            byPlayer.add(keyOf(caller), call)
            return () => byPlayer.delete(keyOf(caller), call)
          })
      })
    })
  )
}
