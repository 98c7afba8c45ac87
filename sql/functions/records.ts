/** Records of Functions: log lines, which are kept for a week, and usage by the hour. */
import { Array, Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate
type Time = typeof Time.Type

const Level = Schema.Literals(["debug", "info", "warn", "error"])

const NewLine = Schema.Struct({
  environmentId: EnvironmentId,
  at: Time,
  level: Level,
  message: Schema.String,
  version: Schema.Int
})
export type NewLogLine = typeof NewLine.Type

const LineRow = Schema.Struct({
  id: Schema.String,
  at: Time,
  level: Level,
  message: Schema.String,
  version: Schema.Int
})
export type LogLineRow = typeof LineRow.Type

const Page = Schema.Struct({
  environmentId: EnvironmentId,
  after: Schema.String,
  limit: Schema.Int
})

const Usage = Schema.Struct({
  environmentId: EnvironmentId,
  hour: Time,
  requests: Schema.Int,
  cpuMillis: Schema.Int,
  bytes: Schema.Int
})
export type UsageOfHour = typeof Usage.Type

const statements = (sql: SqlClient.SqlClient) => ({
  append: SqlSchema.void({
    Request: Schema.NonEmptyArray(NewLine),
    execute: (lines) => sql`insert into function_logs ${sql.insert(lines)}`
  }),
  newest: SqlSchema.findAll({
    Request: Schema.Struct({ environmentId: EnvironmentId, limit: Schema.Int }),
    Result: LineRow,
    execute: ({ environmentId, limit }) => sql`
      select * from (
        select id::text, at, level, message, version, id as place from function_logs
        where environment_id = ${environmentId} order by id desc limit ${limit}) newest
      order by place`
  }),
  after: SqlSchema.findAll({
    Request: Page,
    Result: LineRow,
    execute: ({ after, environmentId, limit }) => sql`
      select id::text, at, level, message, version from function_logs
      where environment_id = ${environmentId} and id > ${after}::bigint
      order by function_logs.id limit ${limit}`
  }),
  trim: SqlSchema.void({
    Request: Schema.Struct({ environmentId: EnvironmentId, kept: Schema.Int }),
    execute: ({ environmentId, kept }) => sql`
      delete from function_logs where environment_id = ${environmentId} and id <= (
        select id from function_logs where environment_id = ${environmentId}
        order by id desc offset ${kept} limit 1)`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`delete from function_logs where at < ${before}`
  }),
  addUsage: SqlSchema.void({
    Request: Schema.NonEmptyArray(Usage),
    execute: (rows) => sql`
      insert into function_usage as u ${sql.insert(rows)}
      on conflict (environment_id, hour) do update set requests = u.requests + excluded.requests,
        cpu_millis = u.cpu_millis + excluded.cpu_millis, bytes = u.bytes + excluded.bytes`
  }),
  sweepUsage: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`delete from function_usage where hour < ${before}`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { addUsage, after, append, newest, sweep, sweepUsage, trim } = statements(sql)
  return {
    /** Adds lines in order. Lines of environments that no longer exist are an error. */
    append: (lines: ReadonlyArray<NewLogLine>) =>
      Array.isReadonlyArrayNonEmpty(lines) ? orDieWithTimeout(append(lines)) : Effect.void,
    /** The newest lines, oldest of them first. */
    newest: (environmentId: EnvironmentId, limit: number) =>
      orDieWithTimeout(newest({ environmentId, limit })),
    /** The lines after one, oldest first. */
    after: (request: typeof Page.Type) => orDieWithTimeout(after(request)),
    /** Deletes all lines of an environment but the newest. */
    trim: (environmentId: EnvironmentId, kept: number) =>
      orDieWithTimeout(trim({ environmentId, kept })),
    /** Deletes lines from before a time. */
    sweep: (before: Time) => Effect.orDie(sweep(before)),
    /** Adds the usage to the rows of the hours. */
    addUsage: (rows: ReadonlyArray<UsageOfHour>) =>
      Array.isReadonlyArrayNonEmpty(rows) ? orDieWithTimeout(addUsage(rows)) : Effect.void,
    /** Deletes usage from before a time. */
    sweepUsage: (before: Time) => Effect.orDie(sweepUsage(before))
  }
})

/** Repository of `function_logs` and `function_usage`. */
export class FunctionsRecordRepository extends Context.Service<FunctionsRecordRepository>()(
  "sql/functions/records/FunctionsRecordRepository",
  { make }
) {
  static readonly layer = Layer.effect(FunctionsRecordRepository, this.make)
}
