/**
 * What has to be known of a player at every step: that it exists, its name, its ban, its age group. A
 * look-up in memory on a warm node. A change is told to all nodes the moment it is committed; a ban that ends by
 * itself is over by the clock, without anybody telling.
 */
import { Cache, Context, DateTime, Effect, Layer, PubSub, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { AgeBand } from "#rpc/ages"
import type { PlayerBanned } from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { caches } from "#rpc/limits"
import { batchReads } from "#sql/batching"
import { SanctionRepository, type PlayerStatusRow } from "#sql/moderation"
import { Invalidation } from "#server/platform/invalidation"
import { bannedBy, isActive } from "./active-ban.ts"

/** A player as the service treats it. */
export interface PlayerStatus {
  readonly displayName: string
  readonly declaredAgeBand: AgeBand | null
  /** What a banned player is told. */
  readonly banned: PlayerBanned | undefined
}

/** The second line of defence behind the invalidation: nothing is believed for longer. */
const trust = "60 seconds"

/** Changes that wait for a slow consumer; beyond it, everybody may have changed. */
const changesCapacity = 4096

/** A player who has changed, or possibly all of them. */
export type ChangedPlayer = { readonly environmentId: string; readonly playerId: string } | "all"

const changeOf = (id: string): ChangedPlayer => {
  const [environmentId = "", playerId = ""] = id.split("/")
  return { environmentId, playerId }
}

const keyOf = (environmentId: string, playerId: string): string => `${environmentId}/${playerId}`

/** The standings of players. */
export class PlayerStatusCache extends Context.Service<
  PlayerStatusCache,
  {
    /** Undefined when the environment has no such player. */
    readonly get: (
      environmentId: EnvironmentId,
      playerId: PlayerId
    ) => Effect.Effect<PlayerStatus | undefined>
    /** Refuses a player who is banned. */
    readonly requireNotBanned: (
      environmentId: EnvironmentId,
      playerId: PlayerId
    ) => Effect.Effect<void, PlayerBanned>
    /** A player has changed: this node and all others look anew, in a transaction at its commit. */
    readonly invalidate: (environmentId: EnvironmentId, playerId: PlayerId) => Effect.Effect<void>
    /** Players who may have changed, on whichever node; `of` is new by then. */
    readonly changes: Stream.Stream<ChangedPlayer>
  }
>()("server/features/players/status-cache/Standings") {
  static readonly layer = Layer.effect(
    PlayerStatusCache,
    Effect.gen(function* () {
      const invalidation = yield* Invalidation
      const sql = yield* SqlClient.SqlClient
      const { cached, changes } = yield* currentStandings
      const of = Effect.fnUntraced(function* (environmentId: EnvironmentId, playerId: PlayerId) {
        const row = yield* Cache.get(cached, keyOf(environmentId, playerId))
        return row === undefined ? undefined : playerStatusOf(row, yield* DateTime.now)
      })
      return PlayerStatusCache.of({
        get: of,
        requireNotBanned: (environmentId, playerId) =>
          Effect.flatMap(Cache.get(cached, keyOf(environmentId, playerId)), (row) => {
            if (row === undefined || row.sanctionId === null) return Effect.void
            return Effect.flatMap(DateTime.now, (now) => {
              const { banned } = playerStatusOf(row, now)
              return banned === undefined ? Effect.void : Effect.fail(banned)
            })
          }),
        invalidate: (environmentId, playerId) => {
          const id = keyOf(environmentId, playerId)
          const forget = sql.afterCommit(Cache.invalidate(cached, id))
          return Effect.andThen(forget, invalidation.publish({ kind: "player", id }))
        },
        changes
      })
    })
  )
}

/** The standing of a row, at a time. */
export const playerStatusOf = (row: PlayerStatusRow, now: DateTime.Utc): PlayerStatus => {
  const { declaredAgeBand, displayName, expiresAt, note, sanctionId } = row
  const banned =
    sanctionId !== null && isActive({ expiresAt, liftedAt: null }, now)
      ? bannedBy({ id: sanctionId, expiresAt, note })
      : undefined
  return { displayName, declaredAgeBand, banned }
}

/** The rows of players as they are now, and the players who change. */
const currentStandings = Effect.gen(function* () {
  const rows = yield* SanctionRepository
  const invalidation = yield* Invalidation
  const changes = yield* PubSub.dropping<ChangedPlayer>(changesCapacity)
  let missed = false
  const tell = (changed: ChangedPlayer) =>
    Effect.map(PubSub.publish(changes, changed), (taken) => {
      missed ||= !taken
    })
  const find = yield* batchReads((environmentId, playerIds) =>
    Effect.map(
      rows.playerStatuses(environmentId, playerIds),
      (found): ReadonlyMap<string, PlayerStatusRow> =>
        new Map(found.map((row) => [row.playerId, row]))
    )
  )
  const cached = yield* Cache.make({
    capacity: caches.playerStatuses,
    timeToLive: trust,
    lookup: Effect.fnUntraced(function* (key: string) {
      const [environmentId = "", playerId = ""] = key.split("/")
      return (yield* find(environmentId, [playerId])).get(playerId)
    })
  })
  yield* invalidation.subscribe(({ id, kind }) => {
    if (kind === "player") {
      return Effect.andThen(Cache.invalidate(cached, id), tell(changeOf(id)))
    }
    if (kind !== "everything") return Effect.void
    return Effect.andThen(Cache.invalidateAll(cached), tell("all"))
  })
  const told = Stream.map(Stream.fromPubSub(changes), (changed): ChangedPlayer => {
    if (!missed) return changed
    missed = false
    return "all"
  })
  return { cached, changes: told }
})
