/** Rows of `function_deliveries` that have failed for good, of one environment. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { ContentType, Kind } from "./deliveries.ts"

const Time = Schema.DateTimeUtcFromDate

const Row = Schema.Struct({
  id: Schema.String,
  kind: Kind,
  target: Schema.String,
  contentType: ContentType,
  body: Schema.Uint8Array,
  attempts: Schema.Int,
  sentAt: Time,
  failedAt: Time
})
export type DeadLetterRow = typeof Row.Type

const Page = Schema.Struct({
  environmentId: EnvironmentId,
  target: Schema.UndefinedOr(Schema.String),
  before: Schema.UndefinedOr(Schema.String),
  limit: Schema.Int
})

const One = Schema.Struct({ environmentId: EnvironmentId, id: Schema.String })

const Retried = Schema.Struct({ ...One.fields, dueAt: Time })

const Named = Schema.Struct({ kind: Kind, target: Schema.String })

const statements = (sql: SqlClient.SqlClient) => ({
  page: SqlSchema.findAll({
    Request: Page,
    Result: Row,
    execute: ({ before, environmentId, limit, target }) => sql`
      select id::text, kind, target, content_type, body, attempts, sent_at, failed_at
      from function_deliveries
      where environment_id = ${environmentId} and failed_at is not null
        and ${target === undefined ? sql`true` : sql`target = ${target}`}
        and ${before === undefined ? sql`true` : sql`id < ${before}::bigint`}
      order by function_deliveries.id desc limit ${limit}`
  }),
  retry: SqlSchema.findOneOption({
    Request: Retried,
    Result: Named,
    execute: ({ dueAt, environmentId, id }) => sql`
      update function_deliveries set due_at = ${dueAt}, failed_at = null, attempts = 0
      where environment_id = ${environmentId} and id = ${id}::bigint and failed_at is not null
      returning kind, target`
  }),
  remove: SqlSchema.findOneOption({
    Request: One,
    Result: Named,
    execute: ({ environmentId, id }) => sql`
      delete from function_deliveries
      where environment_id = ${environmentId} and id = ${id}::bigint and failed_at is not null
      returning kind, target`
  })
})

const make = Effect.gen(function* () {
  const { page, remove, retry } = statements(yield* SqlClient.SqlClient)
  return {
    /** The newest before an id, of one queue or hook or of all. */
    page: (request: typeof Page.Type) => orDieWithTimeout(page(request)),
    /** Makes a dead letter due again. Returns its queue or hook. */
    retry: (request: typeof Retried.Type) =>
      Effect.map(orDieWithTimeout(retry(request)), Option.getOrUndefined),
    /** Deletes one; returns its queue or hook. */
    remove: (request: typeof One.Type) =>
      Effect.map(orDieWithTimeout(remove(request)), Option.getOrUndefined)
  }
})

/** Repository of dead letters. */
export class DeadLetterRepository extends Context.Service<DeadLetterRepository>()(
  "sql/functions/dead-letters/DeadLetterRepository",
  { make }
) {
  static readonly layer = Layer.effect(DeadLetterRepository, this.make)
}
