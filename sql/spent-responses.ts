/** Sealed responses to requests that spent a secret, by the hash of the request, its secret and its key. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { PlayerId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate

const Row = Schema.Struct({
  hash: Schema.String,
  /** An environment, or all developers together. */
  tenant: Schema.String,
  playerId: Schema.NullOr(PlayerId),
  fingerprint: Schema.String,
  sealed: Schema.String,
  expiresAt: Time
})

const statements = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findOneOption({
    Request: Schema.Struct({ hash: Schema.String, now: Time }),
    Result: Schema.Struct({ fingerprint: Schema.String, sealed: Schema.String }),
    execute: ({ hash, now }) => sql`
      select fingerprint, sealed from spent_answers where hash = ${hash} and expires_at > ${now}`
  }),
  insert: SqlSchema.void({
    Request: Schema.Struct({ ...Row.fields, max: Schema.Int }),
    execute: ({ expiresAt, fingerprint, hash, max, playerId, sealed, tenant }) => sql`
      insert into spent_answers (hash, tenant, player_id, fingerprint, sealed, expires_at)
      select ${hash}, ${tenant}, ${playerId}, ${fingerprint}, ${sealed}, ${expiresAt}::timestamptz
      where not exists (
        select from spent_answers where tenant = ${tenant} order by expires_at offset ${max - 1})
      on conflict (hash) do update set fingerprint = excluded.fingerprint,
        sealed = excluded.sealed, expires_at = excluded.expires_at`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (now) => sql`delete from spent_answers where expires_at <= ${now}`
  })
})

/** Repository of the table `spent_answers`. */
export class SpentResponseRepository extends Context.Service<SpentResponseRepository>()(
  "sql/spent-responses/SpentResponseRepository",
  {
    make: Effect.gen(function* () {
      const { find, insert, sweep } = statements(yield* SqlClient.SqlClient)
      return {
        find: (request: Parameters<typeof find>[0]) => orDieWithTimeout(find(request)),
        /** Call within the transaction that spends the secret. Stores nothing beyond `max` of a tenant. */
        insert: (row: Parameters<typeof insert>[0]) => orDieWithTimeout(insert(row)),
        sweep: (now: typeof Time.Type) => Effect.orDie(sweep(now))
      }
    })
  }
) {
  static readonly layer = Layer.effect(SpentResponseRepository, this.make)
}
