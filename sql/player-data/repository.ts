/**
 * Reads and deletes all data of one player, for the export and the deletion. `./tables.ts` lists the
 * tables.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { SignalledBand } from "#rpc/ages"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { playerLimits } from "#rpc/features"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })
type Owner = typeof Owner.Type

const Session = Schema.Struct({ id: Schema.String, createdAt: Time, lastUsedAt: Time })

/** Row of a save; `data` is JSON text. */
const Save = Schema.Struct({
  key: Schema.String,
  version: Schema.Int,
  size: Schema.Int,
  updatedAt: Time,
  data: Schema.String
})
export type ExportedSave = typeof Save.Type

const Signal = Schema.Struct({
  stat: Schema.String,
  value: Schema.Finite,
  reason: Schema.String,
  createdAt: Time
})

/** Private columns of the player row. */
const Choices = Schema.Struct({
  signalledAgeBand: Schema.NullOr(SignalledBand),
  newsOptIn: Schema.NullOr(Schema.Boolean),
  newsChosenAt: Schema.NullOr(Time),
  lastSeenAt: Schema.NullOr(Time)
})

const reads = (sql: SqlClient.SqlClient) => ({
  choices: SqlSchema.findAll({
    Request: Owner,
    Result: Choices,
    execute: ({ environmentId, playerId }) => sql`
      select signalled_age_band, news_opt_in, news_chosen_at, last_seen_at from players
      where id = ${playerId} and environment_id = ${environmentId}`
  }),
  sessions: SqlSchema.findAll({
    Request: Owner,
    Result: Session,
    execute: ({ environmentId, playerId }) => sql`
      select id, created_at, rotated_at as last_used_at from sessions
      where player_id = ${playerId} and environment_id = ${environmentId} order by id`
  }),
  nextSave: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Owner.fields, after: Schema.String }),
    Result: Save,
    execute: ({ after, environmentId, playerId }) => sql`
      select key, version, size, updated_at, data from saves
      where player_id = ${playerId} and environment_id = ${environmentId} and data is not null
        and key > ${after}
      order by key limit 1`
  }),
  signals: SqlSchema.findAll({
    Request: Owner,
    Result: Signal,
    execute: ({ environmentId, playerId }) => sql`
      select stat, value, reason, created_at from stat_signals
      where player_id = ${playerId} and environment_id = ${environmentId} order by id`
  }),
  days: SqlSchema.findAll({
    Request: Owner,
    Result: Schema.Struct({ day: Schema.String }),
    execute: ({ environmentId, playerId }) => sql`
      select day::text as day from player_days
      where player_id = ${playerId} and environment_id = ${environmentId} order by day`
  }),
  stats: SqlSchema.findAll({
    Request: Owner,
    Result: Schema.Struct({ stat: Schema.String, total: Schema.Finite }),
    execute: ({ environmentId, playerId }) => sql`
      select stat, total from stats
      where player_id = ${playerId} and environment_id = ${environmentId} order by stat`
  }),
  rooms: SqlSchema.findAll({
    Request: Owner,
    Result: Schema.Struct({ id: Schema.String }),
    execute: ({ environmentId, playerId }) => sql`
      select id from rooms
      where environment_id = ${environmentId} and members @> ${[playerId]}::text[] order by id`
  }),
  /** Channels whose document contains the player id, as owner or on a list. */
  channels: SqlSchema.findAll({
    Request: Owner,
    Result: Schema.Struct({ name: Schema.String }),
    execute: ({ environmentId, playerId }) => sql`
      select name from channels
      where environment_id = ${environmentId} and position(${playerId} in document) > 0
      order by name`
  })
})

/** The keys of a player's rate limits: by key, a deletion does not scan those of all players. */
const limitKeysOf = (playerId: string): ReadonlyArray<string> =>
  playerLimits.map((name) => `${name}:${playerId}`)

const deletions = (sql: SqlClient.SqlClient) => ({
  player: SqlSchema.findOneOption({
    Request: Owner,
    Result: Schema.Struct({ id: PlayerId }),
    execute: ({ environmentId, playerId }) => sql`
      delete from players where id = ${playerId} and environment_id = ${environmentId}
      returning id`
  }),
  insertTombstone: SqlSchema.void({
    Request: Schema.Struct({ ...Owner.fields, now: Time }),
    execute: ({ environmentId, now, playerId }) => sql`
      insert into deleted_players (id, environment_id, deleted_at)
      values (${playerId}, ${environmentId}, ${now})`
  }),
  idempotencyKeys: SqlSchema.void({
    Request: Owner,
    execute: ({ environmentId, playerId }) => sql`
      delete from idempotency_keys
      where caller = ${playerId} and environment_id = ${environmentId}`
  }),
  throttles: SqlSchema.void({
    Request: Owner,
    execute: ({ playerId }) => sql`
      delete from throttles where key = any(${limitKeysOf(playerId)}::text[])`
  }),
  rateWindows: SqlSchema.void({
    Request: Owner,
    execute: ({ playerId }) => sql`
      delete from rate_windows where key = any(${limitKeysOf(playerId)}::text[])`
  })
})

/** Reads and deletes all rows of one player. */
export class PlayerDataRepository extends Context.Service<PlayerDataRepository>()(
  "sql/player-data/repository/PlayerDataRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { channels, choices, days, nextSave, rooms, sessions, signals, stats } = reads(sql)
      const { idempotencyKeys, insertTombstone, player, rateWindows, throttles } = deletions(sql)
      return {
        /** Lists the names of the channels whose document contains the player id. */
        channels: (owner: Owner) =>
          Effect.map(orDieWithTimeout(channels(owner)), (rows) => rows.map(({ name }) => name)),
        /** The player's first save, in the order of keys, after `key`. */
        nextSave: (owner: Owner, after: string) => orDieWithTimeout(nextSave({ ...owner, after })),
        /** Rows of the export that no other repository reads, except saves. */
        read: (owner: Owner) =>
          orDieWithTimeout(
            Effect.all({
              channels: channels(owner),
              choices: choices(owner),
              days: days(owner),
              rooms: rooms(owner),
              sessions: sessions(owner),
              signals: signals(owner),
              stats: stats(owner)
            })
          ),
        /** Deletes the player and everything it owns. False if the player does not exist. */
        delete: (owner: Owner, now: typeof Time.Type) =>
          orDieWithTimeout(
            Effect.gen(function* () {
              if (Option.isNone(yield* player(owner))) return false
              yield* insertTombstone({ ...owner, now })
              yield* idempotencyKeys(owner)
              yield* throttles(owner)
              yield* rateWindows(owner)
              return true
            })
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(PlayerDataRepository, this.make)
}
