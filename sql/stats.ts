/**
 * Stats: one row per player and stat with its value in every period, and a log of rejected values for
 * the operator. One statement stores a whole report. Under load, reports of different players share a
 * statement.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { isPlayerGone, isRefused, orDieWithTimeout } from "./database.ts"
import { batchWrites } from "./batching.ts"
import { insertEvents } from "./functions/events.ts"

export const signalsPerEnvironment = 10_000

const Time = Schema.DateTimeUtcFromDate

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

/** A value to combine with the stored one. */
const Value = Schema.Struct({
  stat: Schema.String,
  aggregation: Schema.String,
  value: Schema.Finite
})

/** A rejected value, logged for the operator. */
const Signal = Schema.Struct({
  stat: Schema.String,
  value: Schema.Finite,
  reason: Schema.String
})

/** First days of the current periods, as ISO dates. */
const Periods = { day: Schema.String, week: Schema.String, month: Schema.String }

const Report = Schema.Struct({
  ...Owner.fields,
  ...Periods,
  /**
   * Values in one JSON parameter each, so that the statement text does not depend on their number.
   */
  values: Schema.fromJsonString(Schema.Array(Value)),
  signals: Schema.fromJsonString(Schema.Array(Signal)),
  now: Time
})
export type StatReport = typeof Report.Type

/** The reports of one statement, at most one per player. */
const Reports = Schema.Struct({
  reports: Schema.fromJsonString(
    Schema.Array(
      Schema.Struct({
        ...Owner.fields,
        ...Periods,
        now: Schema.DateTimeUtcFromString,
        values: Schema.Array(Value)
      })
    )
  ),
  signals: Schema.fromJsonString(
    Schema.Array(
      Schema.Struct({ ...Owner.fields, ...Signal.fields, now: Schema.DateTimeUtcFromString })
    )
  )
})

const CombinedRow = Schema.Struct({
  stat: Schema.String,
  total: Schema.Finite,
  daily: Schema.Finite,
  weekly: Schema.Finite,
  monthly: Schema.Finite
})

const SecretRow = Schema.Struct({ environmentId: EnvironmentId, sealed: Schema.String })

/** Half of the largest double. */
const halfMax = "8.988465674311579e307"
/** Value below half of the last digit of the largest double: adding it never leaves the range. */
const negligible = "1e291"

/** SQL that combines the stored and the reported value. */
const combined = (column: string): string => `
  case excluded.aggregation
    when 'sum' then s.${column} + excluded.${column}
    when 'max' then greatest(s.${column}, excluded.${column})
    when 'min' then least(s.${column}, excluded.${column})
    else excluded.${column} end`

/**
 * SQL that updates the value of a period. A later period starts from the reported value. A report from
 * a node whose clock is behind counts in the stored period, so each value counts in exactly one.
 */
const inPeriod = (column: string, first: string): string => `
  ${column} = case when s.${first} < excluded.${first} then excluded.${column}
    else ${combined(column)} end, ${first} = greatest(s.${first}, excluded.${first})`

/**
 * SQL for whether the sum is a double. Two halves always add up to one, but Postgres refuses to halve
 * the smallest doubles.
 */
const fits = (column: string): string => `
  case when least(abs(s.${column}), abs(excluded.${column})) < ${negligible} then true
    else abs(s.${column} / 2 + excluded.${column} / 2) <= ${halfMax} end`

/** A value whose sum would be out of range in any period is not stored. */
const inRange = `excluded.aggregation <> 'sum' or (${fits("total")}
  and (s.day < excluded.day or ${fits("daily")})
  and (s.week < excluded.week or ${fits("weekly")})
  and (s.month < excluded.month or ${fits("monthly")}))`

const combine = `aggregation = excluded.aggregation, total = ${combined("total")},
  ${inPeriod("daily", "day")}, ${inPeriod("weekly", "week")}, ${inPeriod("monthly", "month")}`

/** The events of stored reports: of one player, and of several. */
const eventsOf = (sql: SqlClient.SqlClient) => ({
  reported: (environmentId: string, playerId: string, now: Date) => sql`
    select ${environmentId}::text,
      json_build_object('playerId', ${playerId}::text, 'stats', json_object_agg(stat, total)),
      ${now}::timestamptz
    from combined having count(*) > 0`,
  allReported: sql`
    select r."environmentId",
      json_build_object('playerId', r."playerId", 'stats', json_object_agg(c.stat, c.total)),
      max(r.now)
    from combined c join reported r on r."playerId" = c.player_id and r.stat = c.stat
    group by r."environmentId", r."playerId"`
})

const sweepSignals = (sql: SqlClient.SqlClient) =>
  SqlSchema.void({
    Request: Time,
    execute: (before) => sql`
        delete from stat_signals where created_at < ${before} or id in (
          select id from (
            select id, row_number() over (partition by environment_id order by id desc) as nth
            from stat_signals) as numbered
          where nth > ${signalsPerEnvironment}::int)`
  })

const writes = (sql: SqlClient.SqlClient) => {
  const { allReported, reported } = eventsOf(sql)
  const combining = sql.literal(combine)
  const ranged = sql.literal(inRange)
  return {
    report: SqlSchema.findAll({
      Request: Report,
      Result: CombinedRow,
      // Rows are locked in the order of the stats, so two reports cannot deadlock.
      execute: ({ day, environmentId, month, now, playerId, signals, values, week }) => sql`
        with reported as (
          select * from json_to_recordset(${values}::text::json)
            as r(stat text, aggregation text, value float8)
        ), combined as (
          insert into stats as s (environment_id, player_id, stat, aggregation, total, day, daily,
            week, weekly, month, monthly)
          select ${environmentId}, ${playerId}, r.stat, r.aggregation, r.value, ${day}::text::date,
            r.value, ${week}::text::date, r.value, ${month}::text::date, r.value
          from reported as r order by r.stat
          on conflict (player_id, environment_id, stat) do update set ${combining} where ${ranged}
          returning stat, total, daily, weekly, monthly
        ), logged as (
          insert into stat_signals (environment_id, player_id, stat, value, reason, created_at)
          select ${environmentId}, ${playerId}, r.stat, r.value, r.reason, ${now}
          from json_to_recordset(${signals}::text::json)
            as r(stat text, value float8, reason text)
          union all
          select ${environmentId}, ${playerId}, r.stat, r.value, 'overflow', ${now}
          from reported as r where r.stat not in (select stat from combined)
        ), announced as (${insertEvents(sql, "onStats", reported(environmentId, playerId, now))})
        select * from combined`
    }),
    reportAll: SqlSchema.findAll({
      Request: Reports,
      Result: Schema.Struct({ playerId: PlayerId, ...CombinedRow.fields }),
      execute: ({ reports, signals }) => sql`
        with reported as (
          select r."environmentId", r."playerId", r.day, r.week, r.month, r.now, v.*
          from json_to_recordset(${reports}::text::json) as r("environmentId" text, "playerId" text,
              day date, week date, month date, now timestamptz, values json),
            json_to_recordset(r.values) as v(stat text, aggregation text, value float8)
        ), combined as (
          insert into stats as s (environment_id, player_id, stat, aggregation, total, day, daily,
            week, weekly, month, monthly)
          select r."environmentId", r."playerId", r.stat, r.aggregation, r.value, r.day, r.value,
            r.week, r.value, r.month, r.value
          from reported as r order by r."playerId", r.stat
          on conflict (player_id, environment_id, stat) do update set ${combining} where ${ranged}
          returning player_id, stat, total, daily, weekly, monthly
        ), logged as (
          insert into stat_signals (environment_id, player_id, stat, value, reason, created_at)
          select r."environmentId", r."playerId", r.stat, r.value, r.reason, r.now
          from json_to_recordset(${signals}::text::json) as r("environmentId" text, "playerId" text,
            stat text, value float8, reason text, now timestamptz)
          union all
          select r."environmentId", r."playerId", r.stat, r.value, 'overflow', r.now
          from reported as r
          where (r."playerId", r.stat) not in (select player_id, stat from combined)
        ), announced as (${insertEvents(sql, "onStats", allReported)})
        select * from combined`
    }),
    sweep: sweepSignals(sql)
  }
}

const reads = (sql: SqlClient.SqlClient) => ({
  totals: SqlSchema.findAll({
    Request: Owner,
    Result: Schema.Struct({ stat: Schema.String, total: Schema.Finite }),
    execute: ({ environmentId, playerId }) => sql`
      select stat, total from stats
      where player_id = ${playerId} and environment_id = ${environmentId} order by stat`
  }),
  rejected: SqlSchema.findAll({
    Request: Owner,
    Result: Schema.Struct({ ...Signal.fields, createdAt: Time }),
    execute: ({ environmentId, playerId }) => sql`
      select stat, value, reason, created_at from stat_signals
      where player_id = ${playerId} and environment_id = ${environmentId} order by id`
  })
})

/** Approximate length of one value in the JSON parameter. */
const rowCharacters = 200

/** The combined values of a report; none when the player was deleted. */
type ReportResult = Option.Option<ReadonlyArray<typeof CombinedRow.Type>>

const mergeReports = (requests: ReadonlyArray<StatReport>): typeof Reports.Type => ({
  reports: requests,
  signals: requests.flatMap(({ environmentId, now, playerId, signals }) =>
    signals.map((signal) => ({ environmentId, playerId, now, ...signal }))
  )
})

const byPlayer = (
  requests: ReadonlyArray<StatReport>,
  rows: ReadonlyArray<{ readonly playerId: string } & typeof CombinedRow.Type>
): ReadonlyMap<string, ReportResult> => {
  const found = Map.groupBy(rows, ({ playerId }) => playerId)
  return new Map(requests.map(({ playerId }) => [playerId, Option.some(found.get(playerId) ?? [])]))
}

/** Repository of `stats` and `stat_signals`. */
export class StatRepository extends Context.Service<StatRepository>()("sql/stats/StatRepository", {
  make: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { report, reportAll, sweep } = writes(sql)
    const { rejected, totals } = reads(sql)
    const single = (request: StatReport): Effect.Effect<ReportResult> =>
      orDieWithTimeout(
        report(request).pipe(
          Effect.map(Option.some),
          Effect.catchIf(isPlayerGone, () => Effect.succeedNone)
        )
      )
    const batched = yield* batchWrites<StatReport, ReportResult>({
      ownerOf: ({ playerId }) => playerId,
      tenantOf: ({ environmentId }) => environmentId,
      sizeOf: ({ signals, values }) => (values.length + signals.length) * rowCharacters,
      single,
      batch: (requests) =>
        orDieWithTimeout(
          reportAll(mergeReports(requests)).pipe(
            Effect.map((rows) => byPlayer(requests, rows)),
            Effect.catchIf(isRefused, () => Effect.succeed("refused" as const))
          )
        )
    })
    return {
      /**
       * Combines a report with the stored values. Returns the result without the values whose sum
       * would be out of range, or none when the player was deleted. Within a transaction it runs as
       * its own statement, since others must not join it.
       */
      report: (request: StatReport) =>
        Effect.flatMap(Effect.serviceOption(sql.transactionService), (transaction) =>
          Option.isSome(transaction) ? single(request) : batched(request)
        ),
      /** Returns the player's all-time values. */
      totals: (environmentId: EnvironmentId, playerId: PlayerId) =>
        orDieWithTimeout(totals({ environmentId, playerId })),
      /** Returns the player's rejected values, the oldest first. */
      rejected: (owner: typeof Owner.Type) => orDieWithTimeout(rejected(owner)),
      /** Deletes rejected values from before a time, and the oldest beyond the limit per environment. */
      sweep: (before: typeof Time.Type) => Effect.orDie(sweep(before))
    }
  })
}) {
  static readonly layer = Layer.effect(StatRepository, this.make)
}

const secrets = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findOneOption({
    Request: EnvironmentId,
    Result: SecretRow,
    execute: (environmentId) => sql`
      select environment_id, sealed from webhook_secrets where environment_id = ${environmentId}`
  }),
  insert: SqlSchema.void({
    Request: Schema.Struct({ ...SecretRow.fields, createdAt: Time }),
    execute: (row) => sql`insert into webhook_secrets ${sql.insert(row)} on conflict do nothing`
  }),
  replace: SqlSchema.void({
    Request: Schema.Struct({ ...SecretRow.fields, createdAt: Time }),
    execute: (row) => sql`
      insert into webhook_secrets ${sql.insert(row)}
      on conflict (environment_id) do update set sealed = excluded.sealed,
        created_at = excluded.created_at`
  })
})

/** Repository of `webhook_secrets`. */
export class WebhookSecretRepository extends Context.Service<WebhookSecretRepository>()(
  "sql/stats/WebhookSecretRepository",
  {
    make: Effect.gen(function* () {
      const { find, insert, replace } = secrets(yield* SqlClient.SqlClient)
      return {
        find: (environmentId: EnvironmentId) => orDieWithTimeout(find(environmentId)),
        /** Inserts a secret unless the environment already has one. */
        insert: (row: Parameters<typeof insert>[0]) => orDieWithTimeout(insert(row)),
        replace: (row: Parameters<typeof replace>[0]) => orDieWithTimeout(replace(row))
      }
    })
  }
) {
  static readonly layer = Layer.effect(WebhookSecretRepository, this.make)
}
