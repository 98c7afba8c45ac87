/**
 * Live reports of nodes: their connections, queues, channels and calls, one row per node and environment. A
 * node rewrites its rows every few seconds; an old row belongs to a stopped node. The table is unlogged
 * because a report is valid for seconds only.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { isOpen } from "../projects/open.ts"

const Time = Schema.DateTimeUtcFromDate

/** A voice call; times are Unix milliseconds. */
const LiveCall = Schema.Struct({
  channel: Schema.String,
  mode: Schema.Literals(["p2p", "sfu"]),
  relayOnly: Schema.Boolean,
  endsAt: Schema.Number,
  members: Schema.Array(
    Schema.Struct({ playerId: Schema.String, speaks: Schema.Boolean, away: Schema.Boolean })
  )
})
export type LiveCall = typeof LiveCall.Type

/** The queues of one node with their waiting tickets, its channels with their members, and its calls. */
const LiveDocument = Schema.Struct({
  queues: Schema.Array(Schema.Struct({ mode: Schema.String, waiting: Schema.Int })),
  channels: Schema.Array(
    Schema.Struct({ name: Schema.String, members: Schema.Int, voice: Schema.Int })
  ),
  /** Voice calls; absent in reports of the release before. */
  calls: Schema.optionalKey(Schema.Array(LiveCall)),
  /** Whether the node has more channels or calls than the lists name. */
  truncated: Schema.Boolean
})

const LiveReport = Schema.Struct({
  environmentId: EnvironmentId,
  connections: Schema.Int,
  document: LiveDocument
})
export type LiveReport = typeof LiveReport.Type

/** The reports of one node, as one JSON parameter. */
const Reports = Schema.Struct({
  node: Schema.String,
  now: Time,
  reports: Schema.fromJsonString(Schema.Array(LiveReport))
})

const ReportRow = Schema.Struct({
  environmentId: EnvironmentId,
  connections: Schema.Int,
  document: Schema.fromJsonString(LiveDocument)
})

const statements = (sql: SqlClient.SqlClient) => ({
  // The join skips environments whose project has been deleted since the report was built.
  write: SqlSchema.void({
    Request: Reports,
    execute: ({ node, now, reports }) => sql`
      with reported as (
        select r."environmentId" as environment_id, r.connections, r.document::text
        from json_to_recordset(${reports}::text::json)
          as r("environmentId" text, connections int, document json)
        join environments e on e.id = r."environmentId"
        join projects p on p.id = e.project_id and ${isOpen(sql)}
      ), cleared as (
        delete from live_reports
        where node = ${node} and environment_id not in (select environment_id from reported)
      )
      insert into live_reports (environment_id, node, reported_at, connections, document)
      select environment_id, ${node}, ${now}, connections, document from reported
      on conflict (environment_id, node) do update set reported_at = excluded.reported_at,
        connections = excluded.connections, document = excluded.document`
  }),
  read: SqlSchema.findAll({
    Request: Schema.Struct({ environmentId: EnvironmentId, since: Time }),
    Result: ReportRow,
    execute: ({ environmentId, since }) => sql`
      select environment_id, connections, document from live_reports
      where environment_id = ${environmentId} and reported_at > ${since}`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`delete from live_reports where reported_at < ${before}`
  })
})

/** Repository of `live_reports`. */
export class LiveRepository extends Context.Service<LiveRepository>()(
  "sql/live/reports/LiveRepository",
  {
    make: Effect.gen(function* () {
      const { read, sweep, write } = statements(yield* SqlClient.SqlClient)
      return {
        /** Replaces the reports of a node. */
        write: (request: typeof Reports.Type) => orDieWithTimeout(write(request)),
        /** Returns the reports about an environment since a time. */
        read: (request: Parameters<typeof read>[0]) => orDieWithTimeout(read(request)),
        sweep: (before: typeof Time.Type) => Effect.orDie(sweep(before))
      }
    })
  }
) {
  static readonly layer = Layer.effect(LiveRepository, this.make)
}
