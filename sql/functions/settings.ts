/**
 * The state of Functions in an environment: whether they run, their limits, the live version and its crons.
 * The row is locked by each change, so changes of one environment serialize.
 */
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentName } from "#rpc/auth"
import { functions } from "#rpc/functions/limits"
import { EnvironmentId, ProjectId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate
type Time = typeof Time.Type

export const SuspendedReason = Schema.Literals(["balance", "abuse"])
export type SuspendedReason = typeof SuspendedReason.Type

const SettingsRow = Schema.Struct({
  enabled: Schema.Boolean,
  suspendedReason: Schema.NullOr(SuspendedReason),
  cpuMs: Schema.Int,
  subRequests: Schema.Int,
  lastVersion: Schema.Int,
  liveVersion: Schema.NullOr(Schema.Int)
})
export type FunctionsSettings = typeof SettingsRow.Type

/** The state of an environment that never enabled Functions. */
const unused: FunctionsSettings = {
  enabled: false,
  suspendedReason: null,
  cpuMs: functions.cpuMillisDefault,
  subRequests: functions.subRequestsDefault,
  lastVersion: 0,
  liveVersion: null
}

const Changed = Schema.Struct({
  environmentId: EnvironmentId,
  enabled: Schema.Boolean,
  cpuMs: Schema.Int,
  subRequests: Schema.Int
})

const Suspension = Schema.Struct({
  environmentId: Schema.String,
  reason: Schema.NullOr(SuspendedReason)
})

const Live = Schema.Struct({
  environmentId: EnvironmentId,
  version: Schema.NullOr(Schema.Int),
  hooks: Schema.Array(Schema.String)
})

const DueCron = Schema.Struct({ environmentId: EnvironmentId, cron: Schema.String, dueAt: Time })
export type DueCron = typeof DueCron.Type

const Environment = Schema.Struct({ projectId: ProjectId, name: EnvironmentName })

const EnabledRow = Schema.Struct({
  ...Environment.fields,
  environmentId: EnvironmentId,
  suspendedReason: Schema.NullOr(SuspendedReason)
})

const statements = (sql: SqlClient.SqlClient) => {
  const columns = sql`
    enabled, suspended_reason, cpu_ms, sub_requests, last_version, live_version`
  return {
    find: SqlSchema.findOneOption({
      Request: EnvironmentId,
      Result: SettingsRow,
      execute: (environmentId) => sql`
        select ${columns} from functions where environment_id = ${environmentId}`
    }),
    lock: SqlSchema.findOne({
      Request: EnvironmentId,
      Result: SettingsRow,
      execute: (environmentId) => sql`
        insert into functions as f (environment_id, cpu_ms, sub_requests)
        values (${environmentId}, ${functions.cpuMillisDefault}, ${functions.subRequestsDefault})
        on conflict (environment_id) do update set enabled = f.enabled
        returning ${columns}`
    }),
    change: SqlSchema.void({
      Request: Changed,
      execute: ({ cpuMs, enabled, environmentId, subRequests }) => sql`
        update functions
        set enabled = ${enabled}, cpu_ms = ${cpuMs}, sub_requests = ${subRequests}
        where environment_id = ${environmentId}`
    }),
    setLive: SqlSchema.void({
      Request: Live,
      execute: ({ environmentId, hooks, version }) => sql`
        update functions
        set live_version = ${version}, hooks = ${[...hooks]}::text[],
          last_version = greatest(last_version, coalesce(${version}::int, 0))
        where environment_id = ${environmentId}`
    }),
    enabled: SqlSchema.findAll({
      Request: Schema.Void,
      Result: EnabledRow,
      execute: () => sql`
        select f.environment_id, f.suspended_reason, e.project_id, e.name
        from functions f join environments e on e.id = f.environment_id where f.enabled`
    }),
    setSuspended: SqlSchema.findOneOption({
      Request: Suspension,
      Result: Environment,
      execute: ({ environmentId, reason }) => sql`
        with suspended as (
          insert into functions (environment_id, cpu_ms, sub_requests, suspended_reason)
          select id, ${functions.cpuMillisDefault}, ${functions.subRequestsDefault}, ${reason}
          from environments where id = ${environmentId}
          on conflict (environment_id) do update set suspended_reason = ${reason}
          returning environment_id)
        select e.project_id, e.name
        from environments e join suspended s on s.environment_id = e.id`
    })
  }
}

const crons = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.void({
    Request: Schema.NonEmptyArray(DueCron),
    execute: (rows) => sql`insert into function_crons ${sql.insert(rows)}`
  }),
  // A deleted project has no keys, and its functions do not run.
  lockDue: SqlSchema.findAll({
    Request: Schema.Struct({ now: Time, limit: Schema.Int }),
    Result: DueCron,
    execute: ({ limit, now }) => sql`
      select c.environment_id, c.cron, c.due_at
      from function_crons c
        join functions f on f.environment_id = c.environment_id
        join environments e on e.id = c.environment_id
        join projects p on p.id = e.project_id
      where c.due_at <= ${now} and f.enabled and f.suspended_reason is null
        and p.deleted_at is null and p.removed_at is null
      order by c.due_at limit ${limit}
      for update of c skip locked`
  }),
  postpone: SqlSchema.void({
    Request: DueCron,
    execute: ({ cron, dueAt, environmentId }) => sql`
      update function_crons set due_at = ${dueAt}
      where environment_id = ${environmentId} and cron = ${cron}`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { change, enabled, find, lock, setLive, setSuspended } = statements(sql)
  const { insert, lockDue, postpone } = crons(sql)
  return {
    find: (environmentId: EnvironmentId) =>
      Effect.map(
        orDieWithTimeout(find(environmentId)),
        Option.getOrElse(() => unused)
      ),
    /** Locks the state of an environment until the transaction ends. */
    lock: (environmentId: EnvironmentId) => orDieWithTimeout(lock(environmentId)),
    /** Changes whether Functions are on, and their limits. Lock the state first. */
    change: (request: typeof Changed.Type) => orDieWithTimeout(change(request)),
    /**
     * Sets the live version with its hooks and crons; null for no version. Lock the state first.
     */
    setLive: Effect.fnUntraced(function* (live: typeof Live.Type, due: ReadonlyArray<DueCron>) {
      yield* orDieWithTimeout(setLive(live))
      const { environmentId } = live
      yield* orDieWithTimeout(
        sql`delete from function_crons where environment_id = ${environmentId}`
      )
      if (Array.isReadonlyArrayNonEmpty(due)) yield* orDieWithTimeout(insert(due))
    }),
    /** The environments that have Functions on, suspended or not. */
    enabled: orDieWithTimeout(enabled()),
    /** Suspends or resumes Functions; returns the environment, none if it does not exist. */
    setSuspended: (request: typeof Suspension.Type) => orDieWithTimeout(setSuspended(request)),
    /** Locks due crons that no other process has, until the transaction ends. */
    lockDue: (now: Time, limit: number) => orDieWithTimeout(lockDue({ now, limit })),
    postpone: (cron: DueCron) => orDieWithTimeout(postpone(cron))
  }
})

/** Repository of `functions` and `function_crons`. */
export class FunctionsRepository extends Context.Service<FunctionsRepository>()(
  "sql/functions/settings/FunctionsRepository",
  { make }
) {
  static readonly layer = Layer.effect(FunctionsRepository, this.make)
}
