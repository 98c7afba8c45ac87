/**
 * Usage of a project: when each key was last used, and how many players were active on a day. Each node
 * buffers usage in memory and writes it in batches every few seconds, so a request costs one set entry.
 * While the database is unreachable the buffer grows up to a bound.
 */
import { Context, DateTime, Effect, Latch, Layer } from "effect"
import type { EnvironmentId, KeyId, PlayerId } from "#rpc/ids"
import { projects as limits } from "#rpc/limits"
import { UsageRepository } from "#sql/projects/usage"
import { sweepDaily } from "./database.ts"

/** Days of per-player records; more than one, since the clocks of nodes differ. */
const keptDays = 2

export class Usage extends Context.Service<
  Usage,
  {
    readonly keyUsed: (keyId: KeyId) => Effect.Effect<void>
    /** Counts the player as active today. */
    readonly playerSeen: (environmentId: EnvironmentId, playerId: PlayerId) => Effect.Effect<void>
    /** Writes the buffer. */
    readonly flush: Effect.Effect<void>
  }
>()("server/features/projects/usage/Usage") {
  static readonly layer = Layer.effect(
    Usage,
    Effect.gen(function* () {
      const repository = yield* UsageRepository
      const buffer = new UsageBuffer()
      const flush = Effect.gen(function* () {
        const now = yield* DateTime.now
        const today = DateTime.formatIsoDateUtc(now)
        const taken = buffer.take(today)
        const { keys, visits } = taken
        yield* Effect.onError(
          Effect.andThen(
            keys.length === 0 ? Effect.void : repository.useKeys(keys, now),
            visits.length === 0 ? Effect.void : repository.countPlayers(visits, today)
          ),
          () => Effect.sync(() => buffer.putBack(taken))
        )
      })
      const tryFlush = Effect.exit(
        Effect.tapDefect(flush, (defect) => Effect.logWarning("Failed to write usage", defect))
      )
      yield* Effect.addFinalizer(() => tryFlush)
      yield* buffer.nonEmpty.await.pipe(
        Effect.andThen(Effect.sleep(limits.usageMillis)),
        Effect.andThen(tryFlush),
        Effect.forever,
        Effect.forkScoped
      )
      yield* sweepDaily("Days of players", (now) =>
        repository.sweep(DateTime.formatIsoDateUtc(DateTime.subtract(now, { days: keptDays })))
      )
      return Usage.of({
        keyUsed: (keyId) => Effect.sync(() => buffer.keyUsed(keyId)),
        playerSeen: (environmentId, playerId) =>
          Effect.sync(() => buffer.playerSeen(environmentId, playerId)),
        flush
      })
    })
  )
}

interface Visit {
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
}

/** Usage that is not written yet, and the players already counted today. */
class UsageBuffer {
  /** Open while there is something to write. */
  readonly nonEmpty = Latch.makeUnsafe(false)
  #keys = new Set<KeyId>()
  #visits = new Map<PlayerId, Visit>()
  readonly #seen = new Set<PlayerId>()
  #day = ""

  keyUsed(keyId: KeyId): void {
    this.#keys.add(keyId)
    this.nonEmpty.openUnsafe()
  }

  playerSeen(environmentId: EnvironmentId, playerId: PlayerId): void {
    if (this.#seen.has(playerId) || this.#visits.size >= limits.seenPlayersMax) return
    if (this.#seen.size >= limits.seenPlayersMax) this.#seen.clear()
    this.#seen.add(playerId)
    this.#visits.set(playerId, { environmentId, playerId })
    this.nonEmpty.openUnsafe()
  }

  /** Takes what is buffer. On a new day everybody counts again, from the next visit. */
  take(today: string) {
    this.nonEmpty.closeUnsafe()
    if (this.#day !== today) {
      this.#day = today
      this.#seen.clear()
    }
    const taken = { keys: Array.from(this.#keys), visits: Array.from(this.#visits.values()) }
    this.#keys = new Set()
    this.#visits = new Map()
    return taken
  }

  /** Puts entries back that could not be written. */
  putBack(taken: ReturnType<UsageBuffer["take"]>): void {
    for (const keyId of taken.keys) this.#keys.add(keyId)
    for (const visit of taken.visits) this.#visits.set(visit.playerId, visit)
    this.nonEmpty.openUnsafe()
  }
}
