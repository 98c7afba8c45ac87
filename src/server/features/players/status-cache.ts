/**
 * Per-node cache of a player's existence, name, ban and age band, and whether it has blocks. Every commit
 * that changes a player invalidates its entry on all nodes. A ban expires by the clock, without an invalidation.
 */
import { Cache, Context, DateTime, Effect, Layer, PubSub, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { AgeBand } from "#rpc/ages"
import { type PlayerBanned, Unauthorized } from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { batchReads } from "#sql/batching"
import { SanctionRepository, type PlayerStatusRow } from "#sql/moderation"
import { Invalidation } from "#server/platform/invalidation"
import { makeValueCache } from "#server/platform/value-cache"
import { bannedBy, isActive } from "./active-ban.ts"

/** Player state that authorization depends on. */
export interface PlayerStatus {
  readonly displayName: string
  readonly declaredAgeBand: AgeBand | null
  /** Whether the player has blocked anybody. */
  readonly hasBlocks: boolean
  /** Error for requests by this player; undefined without an active ban. */
  readonly banned: PlayerBanned | undefined
  /** The error of the last ban, also of one that has ended; undefined without any. */
  readonly lastBan: PlayerBanned | undefined
}

/** Bounds the staleness of an entry if an invalidation gets lost. */
const timeToLive = "60 seconds"

/**
 * Bound of the queue for a slow consumer of `changes`. After an overflow the next change is `"all"`.
 */
const changesCapacity = 4096

/** A player whose status may have changed, or all players. */
export type ChangedPlayer = { readonly environmentId: string; readonly playerId: string } | "all"

const changeOf = (id: string): ChangedPlayer => {
  const [environmentId = "", playerId = ""] = id.split("/")
  return { environmentId, playerId }
}

const keyOf = (environmentId: string, playerId: string): string => `${environmentId}/${playerId}`

/** Caches the status of players. */
export class PlayerStatusCache extends Context.Service<
  PlayerStatusCache,
  {
    /** Returns the status of a player; undefined if the environment has no such player. */
    readonly get: (
      environmentId: EnvironmentId,
      playerId: PlayerId
    ) => Effect.Effect<PlayerStatus | undefined>
    /** Fails for a deleted player, whose tokens still verify, and for a banned one unless `evenBanned`. */
    readonly requireActive: (
      environmentId: EnvironmentId,
      playerId: PlayerId,
      evenBanned: boolean
    ) => Effect.Effect<void, PlayerBanned | Unauthorized>
    /** Fails for a banned player. Accepts an unknown one. */
    readonly requireNotBanned: (
      environmentId: EnvironmentId,
      playerId: PlayerId
    ) => Effect.Effect<void, PlayerBanned>
    /** Drops the entry of a player on all nodes. Within a transaction, drops it at the commit. */
    readonly invalidate: (environmentId: EnvironmentId, playerId: PlayerId) => Effect.Effect<void>
    /** Stream of players that may have changed, on any node. `get` already returns the new status. */
    readonly changes: Stream.Stream<ChangedPlayer>
  }
>()("server/features/players/status-cache/PlayerStatusCache") {
  static readonly layer = Layer.effect(
    PlayerStatusCache,
    Effect.gen(function* () {
      const invalidation = yield* Invalidation
      const sql = yield* SqlClient.SqlClient
      const { cached, changes } = yield* makeCache
      const get = Effect.fnUntraced(function* (environmentId: EnvironmentId, playerId: PlayerId) {
        const row = yield* Cache.get(cached, keyOf(environmentId, playerId))
        return row === undefined ? undefined : playerStatusOf(row, yield* DateTime.now)
      })
      return PlayerStatusCache.of({
        get,
        requireActive: (environmentId, playerId, evenBanned) =>
          Effect.flatMap(
            Cache.get(cached, keyOf(environmentId, playerId)),
            (row): Effect.Effect<void, PlayerBanned | Unauthorized> => {
              if (row === undefined) return Effect.fail(new Unauthorized())
              return evenBanned ? Effect.void : notBanned(row)
            }
          ),
        requireNotBanned: (environmentId, playerId) =>
          Effect.flatMap(Cache.get(cached, keyOf(environmentId, playerId)), (row) =>
            row === undefined ? Effect.void : notBanned(row)
          ),
        invalidate: (environmentId, playerId) => {
          const id = keyOf(environmentId, playerId)
          const dropLocal = sql.afterCommit(Cache.invalidate(cached, id))
          return Effect.andThen(dropLocal, invalidation.publish({ kind: "player", id }))
        },
        changes
      })
    })
  )
}

/** Returns the status of a row at a point in time. */
export const playerStatusOf = (row: PlayerStatusRow, now: DateTime.Utc): PlayerStatus => {
  const { declaredAgeBand, displayName, expiresAt, hasBlocks, note, sanctionId } = row
  const lastBan = sanctionId === null ? undefined : bannedBy({ id: sanctionId, expiresAt, note })
  const banned = isActive(row, now) ? lastBan : undefined
  return { displayName, declaredAgeBand, hasBlocks, banned, lastBan }
}

const notBanned = (row: PlayerStatusRow): Effect.Effect<void, PlayerBanned> => {
  if (row.sanctionId === null || row.liftedAt !== null) return Effect.void
  return Effect.flatMap(DateTime.now, (now) => {
    const { banned } = playerStatusOf(row, now)
    return banned === undefined ? Effect.void : Effect.fail(banned)
  })
}

/** Cache of rows, and the stream of changed players. */
const makeCache = Effect.gen(function* () {
  const sanctions = yield* SanctionRepository
  const invalidation = yield* Invalidation
  const changes = yield* PubSub.dropping<ChangedPlayer>(changesCapacity)
  let overflows = 0
  const publish = (changed: ChangedPlayer) =>
    Effect.map(PubSub.publish(changes, changed), (isBuffered) => {
      if (!isBuffered) overflows += 1
    })
  const find = yield* batchReads((environmentId, playerIds) =>
    Effect.map(
      sanctions.playerStatuses(environmentId, playerIds),
      (found): ReadonlyMap<string, PlayerStatusRow> =>
        new Map(found.map((row) => [row.playerId, row]))
    )
  )
  const cached = yield* makeValueCache({
    capacity: 50_000,
    timeToLive,
    lookup: Effect.fnUntraced(function* (key: string) {
      const [environmentId = "", playerId = ""] = key.split("/")
      return (yield* find(environmentId, [playerId])).get(playerId)
    })
  })
  yield* invalidation.subscribe(({ id, kind }) => {
    if (kind === "player") {
      return Effect.andThen(Cache.invalidate(cached, id), publish(changeOf(id)))
    }
    if (kind !== "everything") return Effect.void
    return Effect.andThen(Cache.invalidateAll(cached), publish("all"))
  })
  const stream = Stream.suspend(() => {
    let seen = overflows
    return Stream.map(Stream.fromPubSub(changes), (changed): ChangedPlayer => {
      if (seen === overflows) return changed
      seen = overflows
      return "all"
    })
  })
  return { cached, changes: stream }
})
