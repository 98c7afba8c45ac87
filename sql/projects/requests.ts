/** Counts of the requests of each environment, by minute: all, and those with a 4xx or 5xx response. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const counts = {
  requests: Schema.Int,
  clientErrors: Schema.Int,
  serverErrors: Schema.Int
}

/** Increments of a node for the counts of one minute. */
const Added = Schema.Struct({
  environmentId: EnvironmentId,
  minute: Schema.DateTimeUtcFromString,
  ...counts
})
export type RequestMinute = typeof Added.Type

const Since = Schema.Struct({ environmentId: EnvironmentId, since: Time })

/** The counts of a minute or an hour, by its start. */
const Counted = Schema.Struct({ start: Time, ...counts })
export type RequestsCounted = typeof Counted.Type

const statements = (sql: SqlClient.SqlClient) => ({
  // The join leaves out deleted environments; rows are locked in one order.
  add: SqlSchema.void({
    Request: Schema.fromJsonString(Schema.Array(Added)),
    execute: (minutes) => sql`
      with known as (
        select e.id, r.* from json_to_recordset(${minutes}::text::json) as r(
          "environmentId" text, minute timestamptz,
          requests int, "clientErrors" int, "serverErrors" int)
        join environments e on e.id = r."environmentId"
        order by e.id, r.minute for key share of e
      )
      insert into request_minutes as m
        (environment_id, minute, requests, client_errors, server_errors)
      select id, minute, requests, "clientErrors", "serverErrors" from known
      on conflict (environment_id, minute) do update set
        requests = m.requests + excluded.requests,
        client_errors = m.client_errors + excluded.client_errors,
        server_errors = m.server_errors + excluded.server_errors`
  }),
  minutes: SqlSchema.findAll({
    Request: Since,
    Result: Counted,
    execute: ({ environmentId, since }) => sql`
      select minute as start, requests, client_errors, server_errors from request_minutes
      where environment_id = ${environmentId} and minute >= ${since}`
  }),
  hours: SqlSchema.findAll({
    Request: Since,
    Result: Counted,
    execute: ({ environmentId, since }) => sql`
      select date_trunc('hour', minute, 'UTC') as start, sum(requests)::int as requests,
        sum(client_errors)::int as client_errors, sum(server_errors)::int as server_errors
      from request_minutes
      where environment_id = ${environmentId} and minute >= ${since} group by 1`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`delete from request_minutes where minute < ${before}`
  })
})

/** Repository of `request_minutes`. */
export class RequestCountRepository extends Context.Service<RequestCountRepository>()(
  "sql/projects/requests/RequestCountRepository",
  {
    make: Effect.gen(function* () {
      const { add, hours, minutes, sweep } = statements(yield* SqlClient.SqlClient)
      return {
        add: (added: ReadonlyArray<RequestMinute>) => orDieWithTimeout(add(added)),
        /** Returns the counts of minutes since a time; those without requests are missing. */
        minutes: (request: typeof Since.Type) => orDieWithTimeout(minutes(request)),
        /** The same by hours, of which the first may be incomplete. */
        hours: (request: typeof Since.Type) => orDieWithTimeout(hours(request)),
        sweep: (before: typeof Time.Type) => Effect.orDie(sweep(before))
      }
    })
  }
) {
  static readonly layer = Layer.effect(RequestCountRepository, this.make)
}
