/**
 * Usage of a project: when each key was last used, when each player was last seen, and how many
 * players were active on a day. Each node buffers usage in memory and writes it in batches every few
 * seconds, at most once per player and five minutes. A request costs one look-up in a set. While the
 * database is unreachable the buffer grows up to a bound.
 */
import { Array, Context, DateTime, Effect, Latch, Layer } from "effect"
import type { EnvironmentId, KeyId, PlayerId } from "#rpc/ids"
import { UsageRepository, type Visit } from "#sql/projects/usage"
import { sweepDaily } from "./database.ts"

/** Interval at which a node writes key usage and player visits, in one statement. */
const usageMillis = 5000

/** A node writes the visits of a player once in this time. */
const seenMillis = 300_000

/** Players that a node remembers as written. Beyond it, the node asks the database. */
const seenPlayersMax = 200_000
const visitsPerStatement = 1000

/** Days of per-player records; more than one, since the clocks of nodes differ. */
const keptDays = 2

export class Usage extends Context.Service<
  Usage,
  {
    readonly keyUsed: (keyId: KeyId) => Effect.Effect<void>
    /** Counts the player as active today, and as seen now. */
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
        const taken = buffer.take()
        const { keys, visits } = taken
        yield* Effect.onError(
          Effect.andThen(
            keys.length === 0 ? Effect.void : repository.useKeys(keys, now),
            Effect.forEach(
              Array.chunksOf(visits, visitsPerStatement),
              (some) =>
                Effect.andThen(repository.countPlayers(some, today), repository.seePlayers(some)),
              { discard: true }
            )
          ),
          () => Effect.sync(() => buffer.putBack(taken))
        )
      })
      const tryFlush = Effect.exit(
        Effect.tapDefect(flush, (defect) => Effect.logWarning("Failed to write usage", defect))
      )
      yield* Effect.addFinalizer(() => tryFlush)
      yield* buffer.nonEmpty.await.pipe(
        Effect.andThen(Effect.sleep(usageMillis)),
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
          Effect.map(DateTime.now, (seenAt) =>
            buffer.playerSeen({ environmentId, playerId, seenAt })
          ),
        flush
      })
    })
  )
}

const dayMillis = 86_400_000

/** Usage that is not written yet, and when players were last noted. */
class UsageBuffer {
  /** Open while there is something to write. */
  readonly nonEmpty = Latch.makeUnsafe(false)
  #keys = new Set<KeyId>()
  #visits = new Map<PlayerId, Visit>()
  readonly #seen = new Map<PlayerId, number>()

  keyUsed(keyId: KeyId): void {
    this.#keys.add(keyId)
    this.nonEmpty.openUnsafe()
  }

  playerSeen(visit: Visit): void {
    const { playerId, seenAt } = visit
    const millis = DateTime.toEpochMillis(seenAt)
    if (this.#isFresh(playerId, millis) || this.#visits.size >= seenPlayersMax) return
    if (this.#seen.size >= seenPlayersMax) this.#seen.clear()
    this.#seen.set(playerId, millis)
    this.#visits.set(playerId, visit)
    this.nonEmpty.openUnsafe()
  }

  /** Removes and returns the entries of the buffer. */
  take() {
    this.nonEmpty.closeUnsafe()
    const taken = {
      keys: Array.fromIterable(this.#keys),
      visits: Array.fromIterable(this.#visits.values())
    }
    this.#keys = new Set()
    this.#visits = new Map()
    return taken
  }

  /** Whether the player was noted some minutes ago, and today. */
  #isFresh(playerId: PlayerId, now: number): boolean {
    const last = this.#seen.get(playerId)
    if (last === undefined || Math.abs(now - last) >= seenMillis) return false
    return Math.floor(last / dayMillis) === Math.floor(now / dayMillis)
  }

  /** Restores entries that could not be written. */
  putBack(taken: ReturnType<UsageBuffer["take"]>): void {
    for (const keyId of taken.keys) this.#keys.add(keyId)
    for (const visit of taken.visits) {
      if (!this.#visits.has(visit.playerId)) this.#visits.set(visit.playerId, visit)
    }
    this.nonEmpty.openUnsafe()
  }
}
