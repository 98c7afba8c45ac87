/**
 * What is worth knowing of who uses a project (spec section 4.9): when a key was last used, and how
 * many players were there on a day. Written behind, all of a node in one statement every few seconds:
 * a request pays an entry in a set. When the database is away the newest uses wait, up to a bound.
 */
import { Context, DateTime, Effect, Layer, Schedule } from "effect"
import type { EnvironmentId, KeyId, PlayerId } from "#rpc/ids"
import { projects as limits } from "#rpc/limits"
import { UsageRows } from "#sql/projects/usage"
import { sweepHourly } from "../database.ts"

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
>()("src/projects/usage/Usage") {
  static readonly layer = Layer.effect(
    Usage,
    Effect.gen(function* () {
      const rows = yield* UsageRows
      const noted = new Noted()
      const flush = Effect.gen(function* () {
        const now = yield* DateTime.now
        const today = DateTime.formatIsoDateUtc(now)
        const keys = noted.takeKeys()
        const players = noted.takePlayers(today)
        if (keys.length > 0) {
          yield* Effect.onError(rows.useKeys(keys, now), () => noted.keepKeys(keys))
        }
        if (players.length > 0) {
          yield* Effect.onError(rows.countPlayers(players, today), () => noted.keepPlayers(players))
        }
      })
      const calmly = Effect.exit(
        Effect.tapDefect(flush, (defect) => Effect.logWarning("Usage was not written", defect))
      )
      yield* Effect.addFinalizer(() => calmly)
      yield* calmly.pipe(Effect.repeat(Schedule.spaced(limits.usageMillis)), Effect.forkScoped)
      yield* sweepHourly("Days of players", (now) =>
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
  #keys = new Set<KeyId>()
  #visits = new Map<PlayerId, Visit>()
  readonly #seen = new Set<PlayerId>()
  #day = ""

  keyUsed(keyId: KeyId): void {
    this.#keys.add(keyId)
  }

  playerSeen(environmentId: EnvironmentId, playerId: PlayerId): void {
    if (this.#seen.has(playerId) || this.#visits.size >= limits.seenPlayersMax) return
    if (this.#seen.size >= limits.seenPlayersMax) this.#seen.clear()
    this.#seen.add(playerId)
    this.#visits.set(playerId, { environmentId, playerId })
  }

  takeKeys(): ReadonlyArray<KeyId> {
    const taken = Array.from(this.#keys)
    this.#keys = new Set()
    return taken
  }

  /** On a new day everybody counts anew, from the next visit. */
  takePlayers(today: string): ReadonlyArray<Visit> {
    if (this.#day !== today) {
      this.#day = today
      this.#seen.clear()
    }
    const taken = Array.from(this.#visits.values())
    this.#visits = new Map()
    return taken
  }

  keepKeys(keys: ReadonlyArray<KeyId>) {
    return Effect.sync(() => keys.forEach((keyId) => this.#keys.add(keyId)))
  }

  keepPlayers(visits: ReadonlyArray<Visit>) {
    return Effect.sync(() => visits.forEach((visit) => this.#visits.set(visit.playerId, visit)))
  }
}
