/**
 * Pending OAuth flows of developers. They hold the state between the redirect and the callback, the
 * result between the callback and the exchange, and the proof of a repeated sign-in. A row holds
 * the hash of its secret.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { DeveloperId, DeveloperSessionId } from "#rpc/ids"
import { DeveloperIntent, DeveloperProvider } from "#rpc/oauth/developers"
import { isDeveloperSessionGone, orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const FlowRow = Schema.Struct({
  hash: Schema.String,
  provider: DeveloperProvider,
  intent: DeveloperIntent,
  /** The developer and the session that started a link or a renewed proof; null for a sign-in. */
  developerId: Schema.NullOr(DeveloperId),
  sessionId: Schema.NullOr(DeveloperSessionId),
  sealed: Schema.String,
  expiresAt: Time
})
export type DeveloperFlowRow = typeof FlowRow.Type

const Hash = Schema.Struct({ hash: Schema.String })

const statements = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.findOneOption({
    Request: FlowRow,
    Result: Hash,
    execute: (row) => sql`insert into developer_flows ${sql.insert(row)} returning hash`
  }),
  take: SqlSchema.findOneOption({
    Request: Hash,
    Result: FlowRow,
    execute: ({ hash }) => sql`delete from developer_flows where hash = ${hash} returning *`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (now) => sql`delete from developer_flows where expires_at <= ${now}`
  })
})

/** Stores pending OAuth flows of developers. */
export class DeveloperFlowRepository extends Context.Service<DeveloperFlowRepository>()(
  "sql/oauth/developer-flows/DeveloperFlowRepository",
  {
    make: Effect.gen(function* () {
      const { insert, sweep, take } = statements(yield* SqlClient.SqlClient)
      return {
        /** Inserts a flow. Returns false if the session that starts the flow has ended. */
        insert: (row: DeveloperFlowRow) =>
          orDieWithTimeout(
            Effect.catchIf(insert(row), isDeveloperSessionGone, () => Effect.succeedNone)
          ).pipe(Effect.map(Option.isSome)),
        /** Deletes and returns a flow, expired or not. One of several concurrent callers gets it. */
        take: (hash: string) => orDieWithTimeout(take({ hash })),
        sweep: (now: typeof Time.Type) => Effect.orDie(sweep(now))
      }
    })
  }
) {
  static readonly layer = Layer.effect(DeveloperFlowRepository, this.make)
}
