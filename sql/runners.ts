/**
 * Reports of the runners on whom they do not reach: the view from which all runners draw the same
 * verdict (see `src/server/cluster/membership.ts`).
 *
 * The database's clock decides which reports are fresh, since the clocks of two runners may differ.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { failOnTimeout } from "./database.ts"

const Exchange = Schema.Struct({
  self: Schema.String,
  /** Addresses that this runner does not reach. */
  unreachable: Schema.fromJsonString(Schema.Array(Schema.String)),
  /** Addresses whose database session is checked. */
  suspects: Schema.fromJsonString(Schema.Array(Schema.String))
})
export type Exchange = typeof Exchange.Type

const RunnerReport = Schema.Struct({
  address: Schema.String,
  unreachable: Schema.Array(Schema.String),
  /** Whether the report is recent and, for a suspect, the session that wrote it still lives. */
  isPresent: Schema.Boolean
})
export type RunnerReport = typeof RunnerReport.Type

const statements = (sql: SqlClient.SqlClient) => ({
  exchange: SqlSchema.findAll({
    Request: Exchange,
    Result: RunnerReport,
    execute: ({ self, suspects, unreachable }) => {
      const texts = (json: string) => sql`array(select jsonb_array_elements_text(${json}::jsonb))`
      return sql`
        with written as (
          insert into runner_reports (address, unreachable, pid, reported_at)
          values (${self}, ${texts(unreachable)}, pg_backend_pid(), now())
          on conflict (address) do update set unreachable = excluded.unreachable,
            pid = excluded.pid, reported_at = excluded.reported_at
        )
        select address, unreachable, reported_at > now() - interval '5 seconds' and case
          when address = any(${texts(suspects)})
          then exists (select from pg_stat_activity as a where a.pid = r.pid)
          else true end as is_present
        from runner_reports as r
        where address <> ${self} and reported_at > now() - interval '1 minute'`
    }
  }),
  remove: SqlSchema.void({
    Request: Schema.String,
    execute: (self) => sql`
      delete from runner_reports
      where address = ${self} or reported_at < now() - interval '1 minute'`
  })
})

/** Repository of the table `runner_reports`. */
export class RunnerReports extends Context.Service<RunnerReports>()("sql/runners/RunnerReports", {
  make: Effect.gen(function* () {
    const { exchange, remove } = statements(yield* SqlClient.SqlClient)
    return {
      /** Writes the report of a runner and returns those that others wrote in the last minute. */
      exchange: (request: Exchange): Effect.Effect<ReadonlyArray<RunnerReport>> =>
        Effect.orDie(failOnTimeout(exchange(request))),
      /** Deletes the report of a runner that starts or stops, and those of runners long gone. */
      remove: (self: string): Effect.Effect<void> => Effect.orDie(failOnTimeout(remove(self)))
    }
  })
}) {
  static readonly layer = Layer.effect(RunnerReports, this.make)
}
