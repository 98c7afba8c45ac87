/**
 * What is worth knowing of who uses a project (spec section 4.9): when a key was last used, and how
 * many players were there on a day. Written behind, all of a node in one statement every few seconds:
 * a request pays an entry in a set. When the database is away the newest uses wait, up to a bound.
 */
import { Context, DateTime, Effect, Latch, Layer } from "effect"
import type { EnvironmentId, KeyId, PlayerId } from "#rpc/ids"
import { projects as limits } from "#rpc/limits"
import { UsageRepository } from "#sql/projects/usage"
import { sweepDaily } from "./database.ts"

/** How long a day may still be counted: clocks of nodes differ. */
const keptDays = 2

export class Usage extends Context.Service<
  Usage,
  {
    readonly keyUsed: (keyId: KeyId) => Effect.Effect<void>
    /** The player was there today. */
    readonly playerSeen: (environmentId: EnvironmentId, playerId: PlayerId) => Effect.Effect<void>
    /** Writes what is not written yet. */
    readonly flush: Effect.Effect<void>
  }
>()("server/features/projects/usage/Usage") {
  static readonly layer = Layer.effect(
    Usage,
    Effect.gen(function* () {
      const rows = yield* UsageRepository
      const noted = new Noted()
      const flush = Effect.gen(function* () {
        const now = yield* DateTime.now
        const today = DateTime.formatIsoDateUtc(now)
        const taken = noted.take(today)
        const { keys, visits } = taken
        yield* Effect.onError(
          Effect.andThen(
            keys.length === 0 ? Effect.void : rows.useKeys(keys, now),
            visits.length === 0 ? Effect.void : rows.countPlayers(visits, today)
          ),
          () => Effect.sync(() => noted.putBack(taken))
        )
      })
      const calmly = Effect.exit(
        Effect.tapDefect(flush, (defect) => Effect.logWarning("Usage was not written", defect))
      )
      yield* Effect.addFinalizer(() => calmly)
      yield* noted.some.await.pipe(
        Effect.andThen(Effect.sleep(limits.usageMillis)),
        Effect.andThen(calmly),
        Effect.forever,
        Effect.forkScoped
      )
      yield* sweepDaily("Days of players", (now) =>
        rows.sweep(DateTime.formatIsoDateUtc(DateTime.subtract(now, { days: keptDays })))
      )
      return Usage.of({
        keyUsed: (keyId) => Effect.sync(() => noted.keyUsed(keyId)),
        playerSeen: (environmentId, playerId) =>
          Effect.sync(() => noted.playerSeen(environmentId, playerId)),
        flush
      })
    })
  )
}

interface Visit {
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
}

/** What a node has noted and not written, and whom it need not note again today. */
class Noted {
  /** Open while there is something to write. */
  readonly some = Latch.makeUnsafe(false)
  #keys = new Set<KeyId>()
  #visits = new Map<PlayerId, Visit>()
  readonly #seen = new Set<PlayerId>()
  #day = ""

  keyUsed(keyId: KeyId): void {
    this.#keys.add(keyId)
    this.some.openUnsafe()
  }

  playerSeen(environmentId: EnvironmentId, playerId: PlayerId): void {
    if (this.#seen.has(playerId) || this.#visits.size >= limits.seenPlayersMax) return
    if (this.#seen.size >= limits.seenPlayersMax) this.#seen.clear()
    this.#seen.add(playerId)
    this.#visits.set(playerId, { environmentId, playerId })
    this.some.openUnsafe()
  }

  /** Takes what is noted. On a new day everybody counts anew, from the next visit. */
  take(today: string) {
    this.some.closeUnsafe()
    if (this.#day !== today) {
      this.#day = today
      this.#seen.clear()
    }
    const taken = { keys: Array.from(this.#keys), visits: Array.from(this.#visits.values()) }
    this.#keys = new Set()
    this.#visits = new Map()
    return taken
  }

  /** What was taken could not be written. */
  putBack(taken: ReturnType<Noted["take"]>): void {
    for (const keyId of taken.keys) this.#keys.add(keyId)
    for (const visit of taken.visits) this.#visits.set(visit.playerId, visit)
    this.some.openUnsafe()
  }
}
