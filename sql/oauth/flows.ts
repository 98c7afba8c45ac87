/**
 * Pending OAuth flows: the state between the redirect and the callback, the result between the callback
 * and the code exchange, and used id tokens. A row holds the hash of its secret and sealed data.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Provider } from "#rpc/identities"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { isPlayerGone, orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const FlowRow = Schema.Struct({
  hash: Schema.String,
  environmentId: EnvironmentId,
  provider: Provider,
  /** The player to link the identity to; null for a sign-in. */
  playerId: Schema.NullOr(PlayerId),
  sealed: Schema.String,
  expiresAt: Time
})
export type FlowRow = typeof FlowRow.Type

const Hash = Schema.Struct({ hash: Schema.String })

const statements = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.findOneOption({
    Request: FlowRow,
    Result: Hash,
    execute: (row) => sql`
      insert into sign_in_steps ${sql.insert(row)} on conflict do nothing returning hash`
  }),
  take: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Hash.fields, provider: Schema.NullOr(Provider) }),
    Result: FlowRow,
    execute: ({ hash, provider }) => sql`
      delete from sign_in_steps
      where hash = ${hash} and provider = coalesce(${provider}, provider)
      returning *`
  }),
  find: SqlSchema.findOneOption({
    Request: Hash,
    Result: Hash,
    execute: ({ hash }) => sql`select hash from sign_in_steps where hash = ${hash}`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (now) => sql`delete from sign_in_steps where expires_at <= ${now}`
  })
})

/** Stores pending OAuth flows. */
export class FlowRepository extends Context.Service<FlowRepository>()(
  "sql/oauth/flows/FlowRepository",
  {
    make: Effect.gen(function* () {
      const { find, insert, sweep, take } = statements(yield* SqlClient.SqlClient)
      return {
        /**
         * Inserts a flow. Returns false if the hash exists already, or the player to link to was
         * deleted.
         */
        insert: (row: FlowRow) =>
          orDieWithTimeout(
            Effect.catchIf(insert(row), isPlayerGone, () => Effect.succeedNone)
          ).pipe(Effect.map(Option.isSome)),
        has: (hash: string) => Effect.map(orDieWithTimeout(find({ hash })), Option.isSome),
        /** Deletes and returns a flow, expired or not. One of several concurrent callers gets it. */
        take: (hash: string, provider: Provider | null) =>
          orDieWithTimeout(take({ hash, provider })),
        sweep: (now: typeof Time.Type) => Effect.orDie(sweep(now))
      }
    })
  }
) {
  static readonly layer = Layer.effect(FlowRepository, this.make)
}
