/**
 * The steps of external sign-ins (spec section 5, rules 9 to 11): what the start leaves for the return
 * from the provider, what that leaves for the exchange, and which id tokens were taken. Only the hash
 * of what opens a step is remembered; what it carries is sealed.
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
  /** Whom the identity is to be linked to. */
  playerId: Schema.NullOr(PlayerId),
  sealed: Schema.String,
  expiresAt: Time
})
export type Step = typeof FlowRow.Type

const Hash = Schema.Struct({ hash: Schema.String })

const statements = (sql: SqlClient.SqlClient) => ({
  put: SqlSchema.findOneOption({
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
  sweep: SqlSchema.void({
    Request: Time,
    execute: (now) => sql`delete from sign_in_steps where expires_at <= ${now}`
  })
})

/** Rows in and out of `sign_in_steps`. */
export class FlowRepository extends Context.Service<FlowRepository>()("sql/oauth/flows/StepRows", {
  make: Effect.gen(function* () {
    const { put: insert, sweep, take } = statements(yield* SqlClient.SqlClient)
    return {
      /** Whether it was not there yet. The step of a player who is gone is not kept: it leads nowhere. */
      put: (row: Step) =>
        orDieWithTimeout(Effect.catchIf(insert(row), isPlayerGone, () => Effect.succeedNone)).pipe(
          Effect.map(Option.isSome)
        ),
      /** The step, expired or not; of many who come at once one gets it. */
      take: (hash: string, provider: Provider | null) => orDieWithTimeout(take({ hash, provider })),
      sweep: (now: typeof Time.Type) => Effect.orDie(sweep(now))
    }
  })
}) {
  static readonly layer = Layer.effect(FlowRepository, this.make)
}
