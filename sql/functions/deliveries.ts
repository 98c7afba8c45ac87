/**
 * Messages of queues, and events for hooks. A process claims a batch of one queue or hook: `due_at` is then
 * the time at which another process may take it over. Without `due_at` a delivery has failed for good.
 */
import { Array, Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate
type Time = typeof Time.Type

export const Kind = Schema.Literals(["message", "event"])

export const ContentType = Schema.Literals(["json", "text", "bytes", "v8"])

const ClaimedRow = Schema.Struct({
  id: Schema.String,
  environmentId: EnvironmentId,
  kind: Kind,
  target: Schema.String,
  contentType: ContentType,
  body: Schema.Uint8Array,
  attempts: Schema.Int,
  sentAt: Time
})
export type ClaimedDelivery = typeof ClaimedRow.Type

const NewRow = Schema.Struct({
  environmentId: EnvironmentId,
  kind: Kind,
  target: Schema.String,
  contentType: ContentType,
  body: Schema.Uint8Array,
  sentAt: Time,
  dueAt: Time
})

const Claim = Schema.Struct({
  now: Time,
  until: Time,
  limit: Schema.Int,
  /** The environments to which this process is delivering. */
  busy: Schema.Array(EnvironmentId)
})

const Later = Schema.Struct({ id: Schema.String, dueAt: Time, attempts: Schema.Int })

const Waiting = Schema.Struct({
  target: Schema.String,
  count: Schema.Int,
  bytes: Schema.Finite
})

const statements = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.void({
    Request: Schema.NonEmptyArray(NewRow),
    execute: (rows) => sql`insert into function_deliveries ${sql.insert(rows)}`
  }),
  claim: SqlSchema.findAll({
    Request: Claim,
    Result: ClaimedRow,
    execute: ({ busy, limit, now, until }) => sql`
      with chosen as (
        select f.environment_id, first.kind, first.target
        from functions f
          join environments e on e.id = f.environment_id
          join projects p on p.id = e.project_id
          cross join lateral (
            select kind, target, due_at from function_deliveries d
            where d.environment_id = f.environment_id and d.due_at <= ${now}
            order by d.due_at limit 1 for update skip locked) first
        where f.enabled and f.suspended_reason is null and f.live_version is not null
          and p.deleted_at is null and p.removed_at is null
          and f.environment_id <> all(${[...busy]}::text[])
        order by first.due_at limit 1),
      batch as (
        select d.id from function_deliveries d join chosen c
          on c.environment_id = d.environment_id and c.kind = d.kind and c.target = d.target
        where d.due_at <= ${now}
        order by d.due_at, d.id limit ${limit} for update of d skip locked)
      update function_deliveries d set due_at = ${until}, attempts = d.attempts + 1
      from batch where d.id = batch.id
      returning d.id::text, d.environment_id, d.kind, d.target, d.content_type, d.body, d.attempts,
        d.sent_at`
  }),
  postpone: SqlSchema.void({
    Request: Schema.Array(Later),
    execute: (rows) => sql`
      update function_deliveries d set due_at = l.due_at, attempts = l.attempts
      from unnest(${rows.map(({ id }) => id)}::bigint[],
        ${rows.map(({ dueAt }) => dueAt.toISOString())}::timestamptz[],
        ${rows.map(({ attempts }) => attempts)}::int[]) as l (id, due_at, attempts)
      where d.id = l.id`
  }),
  fail: SqlSchema.void({
    Request: Schema.Struct({ ids: Schema.Array(Schema.String), now: Time }),
    execute: ({ ids, now }) => sql`
      update function_deliveries set due_at = null, failed_at = ${now}
      where id = any(${[...ids]}::bigint[])`
  }),
  waiting: SqlSchema.findAll({
    Request: EnvironmentId,
    Result: Waiting,
    execute: (environmentId) => sql`
      select target, count(*)::int as count, sum(length(body))::float8 as bytes
      from function_deliveries
      where environment_id = ${environmentId} and kind = 'message' and due_at is not null
      group by target`
  }),
  sweep: SqlSchema.void({
    Request: Schema.Struct({ before: Time, kept: Schema.Int }),
    execute: ({ before, kept }) => sql`
      delete from function_deliveries where failed_at < ${before} or id in (
        select id from (
          select id, row_number() over (partition by environment_id order by failed_at desc) as place
          from function_deliveries where failed_at is not null) failed
        where place > ${kept})`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { claim, fail, insert, postpone, sweep, waiting } = statements(sql)
  return {
    /** Stores messages of a queue. */
    insert: (
      environmentId: EnvironmentId,
      queue: string,
      now: Time,
      messages: ReadonlyArray<Pick<typeof NewRow.Type, "body" | "contentType" | "dueAt">>
    ) => {
      const rows = messages.map((message) => ({
        ...message,
        environmentId,
        kind: "message" as const,
        target: queue,
        sentAt: now
      }))
      return Array.isReadonlyArrayNonEmpty(rows) ? orDieWithTimeout(insert(rows)) : Effect.void
    },
    /** Claims the oldest batch that is due, of an environment whose functions run. */
    claim: (request: typeof Claim.Type) => orDieWithTimeout(claim(request)),
    /** Releases claimed deliveries for a later claim. */
    postpone: (rows: ReadonlyArray<typeof Later.Type>) =>
      rows.length === 0 ? Effect.void : orDieWithTimeout(postpone(rows)),
    /** Deletes delivered messages and events. */
    delete: (ids: ReadonlyArray<string>) =>
      Effect.asVoid(
        orDieWithTimeout(sql`delete from function_deliveries where id = any(${[...ids]}::bigint[])`)
      ),
    /** Marks deliveries as failed for good. */
    fail: (ids: ReadonlyArray<string>, now: Time) => orDieWithTimeout(fail({ ids, now })),
    /** Counts the messages that wait, by queue. */
    waiting: (environmentId: EnvironmentId) => orDieWithTimeout(waiting(environmentId)),
    /** Deletes everything of an environment. */
    clear: (environmentId: EnvironmentId) =>
      Effect.asVoid(
        orDieWithTimeout(
          sql`delete from function_deliveries where environment_id = ${environmentId}`
        )
      ),
    /** Deletes failures from before a time, and all but the newest of each environment. */
    sweep: (before: Time, kept: number) => Effect.orDie(sweep({ before, kept }))
  }
})

/** Repository of `function_deliveries`. */
export class DeliveryRepository extends Context.Service<DeliveryRepository>()(
  "sql/functions/deliveries/DeliveryRepository",
  { make }
) {
  static readonly layer = Layer.effect(DeliveryRepository, this.make)
}
