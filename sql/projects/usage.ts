/**
 * Who uses a project: when its keys were last used, how many players were there on each day. A player
 * counts once a day, whoever tells of it; what is counted stays when the player goes.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, KeyId, PlayerId } from "#rpc/ids"

const Time = Schema.DateTimeUtcFromDate

const Visit = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

/** One JSON parameter, so that the statement is always the same. */
const Visits = Schema.Struct({
  visits: Schema.fromJsonString(Schema.Array(Visit)),
  day: Schema.String
})

const statements = (sql: SqlClient.SqlClient) => ({
  useKeys: SqlSchema.void({
    Request: Schema.Struct({ keys: Schema.Array(KeyId), now: Time }),
    execute: ({ keys, now }) => sql`
      update keys set last_used_at = greatest(last_used_at, ${now})
      where id in (select id from keys where id = any(${[...keys]}::text[]) order by id for update)`
  }),
  countPlayers: SqlSchema.void({
    Request: Visits,
    // In one order for all, so that two nodes never wait for each other; nobody goes meanwhile.
    execute: ({ day, visits }) => sql`
      with there as (
        select p.environment_id, p.id
        from json_to_recordset(${visits}::text::json) as v("environmentId" text, "playerId" text)
        join players p on p.id = v."playerId" and p.environment_id = v."environmentId"
        order by p.environment_id, p.id for key share of p
      ), fresh as (
        insert into player_days (environment_id, day, player_id)
        select environment_id, ${day}::text::date, id from there
        on conflict do nothing returning environment_id
      )
      insert into daily_actives as a (environment_id, day, players)
      select environment_id, ${day}::text::date, count(*) from fresh
      group by environment_id order by environment_id
      on conflict (environment_id, day) do update set players = a.players + excluded.players`
  }),
  sweep: SqlSchema.void({
    Request: Schema.String,
    execute: (before) => sql`delete from player_days where day < ${before}::text::date`
  })
})

/** Rows in and out of `player_days` and `daily_actives`, and when keys were used. */
export class UsageRepository extends Context.Service<UsageRepository>()(
  "sql/projects/usage/UsageRepository",
  {
    make: Effect.gen(function* () {
      const { countPlayers, sweep, useKeys } = statements(yield* SqlClient.SqlClient)
      return {
        useKeys: (keys: ReadonlyArray<KeyId>, now: typeof Time.Type) =>
          Effect.orDie(useKeys({ keys, now })),
        /** Counts players on a day (an ISO date), each once. */
        countPlayers: (visits: ReadonlyArray<typeof Visit.Type>, day: string) =>
          Effect.orDie(countPlayers({ visits, day })),
        sweep: (before: string) => Effect.orDie(sweep(before))
      }
    })
  }
) {
  static readonly layer = Layer.effect(UsageRepository, this.make)
}
