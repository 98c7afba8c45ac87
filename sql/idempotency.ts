/** Stored responses to requests with an `Idempotency-Key`, unique by caller, path and key. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate

/** Identifies a request by its caller, path and key. */
const Named = Schema.Struct({ caller: Schema.String, path: Schema.String, key: Schema.String })
export type NamedRequest = typeof Named.Type

/** The column of `response` is `answer`. */
const Response = Schema.Struct({ fingerprint: Schema.String, response: Schema.String })
export type StoredResponse = typeof Response.Type

const StoredRow = Schema.Struct({
  ...Named.fields,
  ...Response.fields,
  environmentId: EnvironmentId,
  createdAt: Time
})

const statements = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Named.fields, since: Time }),
    Result: Response,
    execute: ({ caller, key, path, since }) => sql`
      select fingerprint, answer as response from idempotency_keys
      where caller = ${caller} and path = ${path} and key = ${key} and created_at > ${since}`
  }),
  lock: SqlSchema.findOne({
    Request: Named,
    Result: Schema.Struct({ free: Schema.Boolean }),
    execute: ({ caller, key, path }) => sql`
      select pg_try_advisory_xact_lock(
        hashtextextended(${JSON.stringify([caller, path, key])}::text, 0)) as free`
  }),
  store: SqlSchema.void({
    Request: StoredRow,
    execute: ({ response, ...row }) => sql`
      insert into idempotency_keys ${sql.insert({ ...row, answer: response })}
      on conflict (caller, path, key) do update set fingerprint = excluded.fingerprint,
        answer = excluded.answer, created_at = excluded.created_at`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`delete from idempotency_keys where created_at <= ${before}`
  })
})

/** Repository of the table `idempotency_keys`. */
export class IdempotencyRepository extends Context.Service<IdempotencyRepository>()(
  "sql/idempotency/IdempotencyRows",
  {
    make: Effect.gen(function* () {
      const { find, store, lock, sweep } = statements(yield* SqlClient.SqlClient)
      return {
        find: (request: Parameters<typeof find>[0]) => orDieWithTimeout(find(request)),
        /** Call within a transaction: false if another one is working on this request. */
        lock: (request: NamedRequest) =>
          Effect.map(orDieWithTimeout(lock(request)), ({ free }) => free),
        /** Call within the same transaction; replaces an expired response. */
        store: (row: typeof StoredRow.Type) => orDieWithTimeout(store(row)),
        sweep: (before: typeof Time.Type) => Effect.orDie(sweep(before))
      }
    })
  }
) {
  static readonly layer = Layer.effect(IdempotencyRepository, this.make)
}
