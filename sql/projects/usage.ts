/**
 * Usage of a project: the last use of its keys, when its players were last seen, and the number of active
 * players per day. A player counts once a day, whichever node reports it. The count stays when the player
 * is deleted.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, KeyId, PlayerId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

const Visit = Schema.Struct({
  ...Owner.fields,
  seenAt: Schema.DateTimeUtcFromString
})
export type Visit = typeof Visit.Type

const visitsJson = Schema.fromJsonString(Schema.Array(Visit))

/** Visits in one JSON parameter, so that the statement text does not depend on their number. */
const Visits = Schema.Struct({ visits: visitsJson, day: Schema.String })

const statements = (sql: SqlClient.SqlClient) => ({
  useKeys: SqlSchema.void({
    Request: Schema.Struct({ keys: Schema.Array(KeyId), now: Time }),
    execute: ({ keys, now }) => sql`
      update keys set last_used_at = greatest(last_used_at, ${now})
      where id in (select id from keys where id = any(${[...keys]}::text[]) order by id for update)`
  }),
  countPlayers: SqlSchema.void({
    Request: Visits,
    // Rows are locked in one order, so two nodes cannot deadlock; the lock also blocks deletions.
    execute: ({ day, visits }) => sql`
      with active as (
        select p.environment_id, p.id
        from json_to_recordset(${visits}::text::json) as v("environmentId" text, "playerId" text)
        join players p on p.id = v."playerId" and p.environment_id = v."environmentId"
        order by p.environment_id, p.id for key share of p
      ), fresh as (
        insert into player_days (environment_id, day, player_id)
        select environment_id, ${day}::text::date, id from active
        on conflict do nothing returning environment_id
      )
      insert into daily_actives as a (environment_id, day, players)
      select environment_id, ${day}::text::date, count(*) from fresh
      group by environment_id order by environment_id
      on conflict (environment_id, day) do update set players = a.players + excluded.players`
  }),
  seePlayers: SqlSchema.void({
    Request: visitsJson,
    // Skips players whose rows others are changing: a later visit writes their time.
    execute: (visits) => sql`
      with seen as (
        select p.id, v."seenAt" as seen_at
        from json_to_recordset(${visits}::text::json)
          as v("environmentId" text, "playerId" text, "seenAt" timestamptz)
        join players p on p.id = v."playerId" and p.environment_id = v."environmentId"
        where p.last_seen_at is null or p.last_seen_at < v."seenAt"
        for no key update of p skip locked
      )
      update players p set last_seen_at = seen.seen_at from seen where p.id = seen.id`
  }),
  days: SqlSchema.findAll({
    Request: Owner,
    Result: Schema.Struct({ day: Schema.String }),
    execute: ({ environmentId, playerId }) => sql`
      select day::text as day from player_days
      where player_id = ${playerId} and environment_id = ${environmentId} order by day`
  }),
  sweep: SqlSchema.void({
    Request: Schema.String,
    execute: (before) => sql`delete from player_days where day < ${before}::text::date`
  })
})

/** Repository of `player_days`, `daily_actives`, and the last use of `keys` and visit of `players`. */
export class UsageRepository extends Context.Service<UsageRepository>()(
  "sql/projects/usage/UsageRepository",
  {
    make: Effect.gen(function* () {
      const { countPlayers, days, seePlayers, sweep, useKeys } = statements(
        yield* SqlClient.SqlClient
      )
      return {
        useKeys: (keys: ReadonlyArray<KeyId>, now: typeof Time.Type) =>
          Effect.orDie(useKeys({ keys, now })),
        /** Counts each player once for a day, which is an ISO date. */
        countPlayers: (visits: ReadonlyArray<Visit>, day: string) =>
          Effect.orDie(countPlayers({ visits, day })),
        /** Stores the times at which players were seen. */
        seePlayers: (visits: ReadonlyArray<Visit>) => Effect.orDie(seePlayers(visits)),
        /** The days on which a player was active. */
        daysOf: (owner: typeof Owner.Type) =>
          Effect.map(orDieWithTimeout(days(owner)), (rows) => rows.map(({ day }) => day)),
        sweep: (before: string) => Effect.orDie(sweep(before))
      }
    })
  }
) {
  static readonly layer = Layer.effect(UsageRepository, this.make)
}
