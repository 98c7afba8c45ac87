/**
 * Metered usage: counts of each environment, month and component. They name the payer of the
 * project, its first member, so that they outlive the project. A payer's month is closed once, with
 * its report.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { DeveloperId, EnvironmentId, ProjectId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const Count = Schema.Struct({
  environmentId: EnvironmentId,
  period: Schema.String,
  component: Schema.String,
  quantity: Schema.BigIntFromString
})
export type UsageCount = typeof Count.Type

/** Counts under an id, by which they are stored once. */
const Batch = Schema.Struct({
  id: Schema.String,
  createdAt: Time,
  counts: Schema.fromJsonString(Schema.Array(Count))
})

const OfPeriod = Schema.Struct({ developerId: DeveloperId, period: Schema.String })

const Total = Schema.Struct({ component: Schema.String, quantity: Schema.BigIntFromString })

/** Charged month; `report` is JSON. `carriedMicroUsd` is the rest for the next month. */
const PeriodRow = Schema.Struct({
  ...OfPeriod.fields,
  report: Schema.String,
  carriedMicroUsd: Schema.BigIntFromString,
  closedAt: Time
})

const Developer = Schema.Struct({ id: DeveloperId })

/** The first member of the project of an environment `e`. */
const payer = (sql: SqlClient.SqlClient) =>
  sql.literal(`cross join lateral (
  select developer_id from project_members m where m.project_id = e.project_id
  order by created_at, developer_id limit 1) payer`)

const counters = (sql: SqlClient.SqlClient) => ({
  add: SqlSchema.void({
    Request: Batch,
    execute: ({ counts, createdAt, id }) => sql`
      with batch as (
        insert into usage_batches (id, created_at) values (${id}, ${createdAt})
        on conflict do nothing returning id
      )
      insert into usage_counters as c (environment_id, period, component, developer_id, quantity)
      select e.id, g.period, g.component, payer.developer_id, g.quantity
      from json_to_recordset(${counts}::text::json)
        as g("environmentId" text, period text, component text, quantity numeric)
      join environments e on e.id = g."environmentId" ${payer(sql)}
      where exists (select from batch)
      order by 1, 2, 3
      on conflict (environment_id, period, component) do update
        set quantity = c.quantity + excluded.quantity`
  }),
  // Saves and stored files of all environments, once for each hour.
  addStorage: SqlSchema.void({
    Request: Schema.Struct({ id: Schema.String, period: Schema.String, createdAt: Time }),
    execute: ({ createdAt, id, period }) => sql`
      with batch as (
        insert into usage_batches (id, created_at) values (${id}, ${createdAt})
        on conflict do nothing returning id
      ), stored as (
        select environment_id, div(sum(bytes), 1048576) as mebibytes from (
          select environment_id, bytes from save_counts
          union all
          select environment_id, size from blobs where stored_at is not null
        ) each_of group by environment_id
      )
      insert into usage_counters as c (environment_id, period, component, developer_id, quantity)
      select e.id, ${period}::text, 'storageMibHours', payer.developer_id, s.mebibytes
      from stored s join environments e on e.id = s.environment_id ${payer(sql)}
      where s.mebibytes > 0 and exists (select from batch)
      order by 1
      on conflict (environment_id, period, component) do update
        set quantity = c.quantity + excluded.quantity`
  }),
  // The number of active players per day is kept anyhow; only its sum is copied.
  setActivePlayers: SqlSchema.void({
    Request: Schema.Struct({ period: Schema.String, developerId: Schema.NullOr(DeveloperId) }),
    execute: ({ developerId, period }) => sql`
      insert into usage_counters as c (environment_id, period, component, developer_id, quantity)
      select e.id, ${period}::text, 'activePlayers', payer.developer_id, a.players
      from (
        select environment_id, sum(players) as players from daily_actives
        where day >= (${period}::text || '-01')::date
          and day < (${period}::text || '-01')::date + interval '1 month'
          and (${developerId}::text is null or environment_id in (
            select o.id from environments o join project_members om on om.project_id = o.project_id
            where om.developer_id = ${developerId}))
        group by environment_id
      ) a join environments e on e.id = a.environment_id ${payer(sql)}
      order by 1
      on conflict (environment_id, period, component) do update
        set quantity = greatest(c.quantity, excluded.quantity)`
  }),
  sweepBatches: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`delete from usage_batches where created_at <= ${before}`
  })
})

const periods = (sql: SqlClient.SqlClient) => ({
  totals: SqlSchema.findAll({
    Request: OfPeriod,
    Result: Total,
    execute: ({ developerId, period }) => sql`
      select component, trunc(sum(quantity))::text as quantity from usage_counters
      where developer_id = ${developerId} and period = ${period}
      group by component order by component`
  }),
  find: SqlSchema.findOneOption({
    Request: OfPeriod,
    Result: PeriodRow,
    execute: ({ developerId, period }) => sql`
      select developer_id, period, report, carried_micro_usd::text, closed_at from usage_periods
      where developer_id = ${developerId} and period = ${period}`
  }),
  carriedInto: SqlSchema.findOneOption({
    Request: OfPeriod,
    Result: Schema.Struct({ carried: Schema.BigIntFromString }),
    execute: ({ developerId, period }) => sql`
      select carried_micro_usd::text as carried from usage_periods
      where developer_id = ${developerId} and period < ${period} order by period desc limit 1`
  }),
  close: SqlSchema.void({
    Request: PeriodRow,
    execute: (row) => sql`insert into usage_periods ${sql.insert(row)}`
  }),
  listOpen: SqlSchema.findAll({
    Request: Schema.Struct({ before: Schema.String, limit: Schema.Int }),
    Result: OfPeriod,
    execute: ({ before, limit }) => sql`
      select distinct c.developer_id, c.period from usage_counters c
      where c.period < ${before} and not exists (
        select from usage_periods p
        where p.developer_id = c.developer_id and p.period >= c.period)
      order by c.period, c.developer_id limit ${limit}`
  }),
  projectsOf: SqlSchema.findAll({
    Request: DeveloperId,
    Result: Schema.Struct({ id: ProjectId }),
    execute: (id) => sql`
      select p.id from projects p where p.removed_at is null and ${id} = (
        select developer_id from project_members m where m.project_id = p.id
        order by created_at, developer_id limit 1)
      order by p.id`
  }),
  payerOf: SqlSchema.findOneOption({
    Request: ProjectId,
    Result: Developer,
    execute: (id) => sql`
      select developer_id as id from project_members where project_id = ${id}
      order by created_at, developer_id limit 1`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { add, addStorage, setActivePlayers, sweepBatches } = counters(sql)
  const { carriedInto, close, find, listOpen, payerOf, projectsOf, totals } = periods(sql)
  return {
    /** Adds counts; a batch that is stored already adds nothing. */
    add: (batch: typeof Batch.Type) => orDieWithTimeout(add(batch)),
    addStorage: (request: Parameters<typeof addStorage>[0]) => Effect.orDie(addStorage(request)),
    /** Copies the active players of a month; of all payers, or of the projects of one developer. */
    setActivePlayers: (request: Parameters<typeof setActivePlayers>[0]) =>
      Effect.orDie(setActivePlayers(request)),
    sweepBatches: (before: typeof Time.Type) => Effect.orDie(sweepBatches(before)),
    /** The sum of each component over all environments of a payer. */
    totals: (request: typeof OfPeriod.Type) => orDieWithTimeout(totals(request)),
    find: (request: typeof OfPeriod.Type) => orDieWithTimeout(find(request)),
    /** Returns the rest that the months before carry into this one. */
    carriedInto: (request: typeof OfPeriod.Type) =>
      Effect.map(
        orDieWithTimeout(carriedInto(request)),
        Option.match({ onNone: () => 0n, onSome: ({ carried }) => carried })
      ),
    /** Closes a month of a payer; run it within a transaction that locks the payer. */
    close: (row: typeof PeriodRow.Type) => orDieWithTimeout(close(row)),
    /** Months before this one with usage that is not charged, oldest first. */
    listOpen: (request: Parameters<typeof listOpen>[0]) => orDieWithTimeout(listOpen(request)),
    /** The projects that a developer pays for. */
    projectsOf: (id: DeveloperId) =>
      Effect.map(orDieWithTimeout(projectsOf(id)), (rows) => rows.map((row) => row.id)),
    payerOf: (projectId: ProjectId) =>
      Effect.map(
        orDieWithTimeout(payerOf(projectId)),
        Option.map(({ id }) => id)
      )
  }
})

/** Repository of `usage_counters`, `usage_batches` and `usage_periods`. */
export class MeteringRepository extends Context.Service<MeteringRepository>()(
  "sql/money/usage/MeteringRepository",
  { make }
) {
  static readonly layer = Layer.effect(MeteringRepository, this.make)
}
