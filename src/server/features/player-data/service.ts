/**
 * Exports all data of a player, and deletes a player permanently. Players and operators share both.
 */
import { Context, DateTime, Effect, Layer, Option, type Scope, Semaphore, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { PlayerNotFound, RateLimited, type Unavailable } from "#rpc/errors/codes"
import { PlayerDataRepository } from "#sql/player-data/repository"
import { PlayerRepository } from "#sql/players"
import { type LargeProperty, PlayerParts } from "#server/platform/player-parts"
import type { PlayerRef } from "../moderation/service.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"

/** Exports of a player's data: one at a time for each player and node. */
const exportLimits = {
  /** Reads of one process at a time, over all exports. */
  readsMax: 4,
  retryAfterSeconds: 10
} as const

/**
 * JSON text of an export. Reads the next value of a large property after the client has read the one
 * before. Fails at the end of such a property after a concurrent deletion of the player.
 */
export type PlayerJson = Stream.Stream<string, PlayerNotFound>

/** Exports and deletes player data. */
export class PlayerData extends Context.Service<
  PlayerData,
  {
    /**
     * Exports a player until the scope closes. A second concurrent export of the player fails with
     * `rate_limited`.
     */
    readonly export: (
      player: PlayerRef
    ) => Effect.Effect<PlayerJson, PlayerNotFound | RateLimited, Scope.Scope>
    /**
     * Deletes a player irreversibly: it leaves its rooms and channels, and its sockets close. `record`
     * runs in the transaction of the deletion, for example to write an audit event.
     */
    readonly delete: <R>(
      player: PlayerRef,
      record: Effect.Effect<void, never, R>
    ) => Effect.Effect<void, PlayerNotFound | Unavailable, R>
  }
>()("server/features/player-data/service/PlayerData") {
  static readonly layer = Layer.effect(
    PlayerData,
    Effect.gen(function* () {
      return PlayerData.of({ export: yield* makeExport, delete: yield* makeDelete })
    })
  )
}

const makeView = Effect.gen(function* () {
  const parts = yield* PlayerParts
  const players = yield* PlayerRepository
  return Effect.fnUntraced(function* ({ environmentId, playerId }: PlayerRef) {
    const found = yield* players.find(environmentId, playerId)
    if (Option.isNone(found)) return yield* new PlayerNotFound()
    const player = { environmentId, playerId, row: found.value }
    const exportedAt = DateTime.formatIso(yield* DateTime.now)
    const read = yield* Effect.forEach(parts, (part) => part.read?.(player) ?? Effect.succeed({}))
    return Object.assign({ exportedAt }, ...read)
  })
})

const makeExport = Effect.gen(function* () {
  const parts = yield* PlayerParts
  const players = yield* PlayerRepository
  const view = yield* makeView
  const exporting = new Set<string>()
  // Held while rows are read, not while a slow client reads them.
  const reading = yield* Semaphore.make(exportLimits.readsMax)

  const begin = ({ playerId }: PlayerRef) =>
    Effect.suspend(() => {
      if (exporting.has(playerId)) {
        const details = { retryAfterSeconds: exportLimits.retryAfterSeconds }
        return Effect.fail(new RateLimited({ details }))
      }
      exporting.add(playerId)
      return Effect.void
    })

  const valuesOf = (ref: PlayerRef, { next }: LargeProperty) =>
    Stream.unfold(
      "",
      Effect.fnUntraced(function* (after: string) {
        const found = yield* reading.withPermits(1)(next(ref, after))
        if (Option.isSome(found)) return [found.value.json, found.value.key] as const
        // Asks the database: caches may hear of a deletion after its rows are gone.
        const player = yield* players.find(ref.environmentId, ref.playerId)
        return Option.isNone(player) ? yield* new PlayerNotFound() : undefined
      })
    )

  const listOf = (ref: PlayerRef, large: LargeProperty): PlayerJson =>
    Stream.make(`,"${large.property}":[`).pipe(
      Stream.concat(
        Stream.zipWithIndex(valuesOf(ref, large)).pipe(
          Stream.map(([json, index]) => (index === 0 ? json : `,${json}`))
        )
      ),
      Stream.concat(Stream.make("]"))
    )

  return Effect.fn("PlayerData.export")(function* (ref: PlayerRef) {
    yield* Effect.acquireRelease(begin(ref), () =>
      Effect.sync(() => exporting.delete(ref.playerId))
    )
    const properties = JSON.stringify(yield* reading.withPermits(1)(view(ref)))
    return Stream.make(properties.slice(0, -1)).pipe(
      Stream.concat(
        Stream.fromIterable(parts).pipe(
          Stream.flatMap(({ large }) => (large === undefined ? Stream.empty : listOf(ref, large)))
        )
      ),
      Stream.concat(Stream.make("}"))
    )
  })
})

const makeDelete = Effect.gen(function* () {
  const parts = yield* PlayerParts
  const repository = yield* PlayerDataRepository
  const sql = yield* SqlClient.SqlClient
  const statuses = yield* PlayerStatusCache

  const deleteRows = Effect.fnUntraced(function* (player: PlayerRef) {
    if (!(yield* repository.delete(player, yield* DateTime.now))) return yield* new PlayerNotFound()
    yield* statuses.invalidate(player.environmentId, player.playerId)
  })

  return Effect.fn("PlayerData.delete")(function* <R>(
    player: PlayerRef,
    record: Effect.Effect<void, never, R>
  ) {
    const afterwards = yield* Effect.forEach(
      parts,
      ({ leave }) => leave?.(player) ?? Effect.succeed(Effect.void)
    )
    yield* sql
      .withTransaction(Effect.andThen(deleteRows(player), record))
      .pipe(Effect.catchTag("SqlError", Effect.die))
    yield* Effect.forEach(afterwards, (run) => run, { discard: true })
  })
})
