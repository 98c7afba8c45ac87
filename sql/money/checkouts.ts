/** Checkouts at the payment provider, and refunds and disputes of their payments. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { CheckoutId, DeveloperId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { sweepClaim } from "../sweep-claims.ts"

const Time = Schema.DateTimeUtcFromDate

const CheckoutRow = Schema.Struct({
  id: CheckoutId,
  developerId: DeveloperId,
  amount: Schema.BigIntFromString,
  status: Schema.Literals(["open", "paid", "expired", "failed"]),
  successUrl: Schema.String,
  cancelUrl: Schema.String,
  /** SHA-256 of the request. */
  fingerprint: Schema.String,
  sessionId: Schema.NullOr(Schema.String),
  url: Schema.NullOr(Schema.String),
  paymentId: Schema.NullOr(Schema.String),
  createdAt: Time,
  expiresAt: Time
})
export type CheckoutRow = typeof CheckoutRow.Type

const NewCheckoutRow = Schema.Struct({
  ...CheckoutRow.fields,
  idempotencyKey: Schema.NullOr(Schema.String)
})

/** A refund or a dispute. `isTaken`: the provider has taken the money back. */
const ReturnRow = Schema.Struct({
  id: Schema.String,
  paymentId: Schema.String,
  kind: Schema.Literals(["refund", "dispute"]),
  amount: Schema.BigIntFromString,
  isTaken: Schema.Boolean,
  isFinal: Schema.Boolean,
  updatedAt: Time
})
export type ReturnRow = typeof ReturnRow.Type

const Keyed = Schema.Struct({ developerId: DeveloperId, key: Schema.String, since: Time })

const checkouts = (sql: SqlClient.SqlClient) => {
  const columns = sql.literal(
    "id, developer_id, amount::text, status, success_url, cancel_url, fingerprint, session_id, url, " +
      "payment_id, created_at, expires_at"
  )
  return {
    insert: SqlSchema.void({
      Request: NewCheckoutRow,
      execute: (row) => sql`insert into checkouts ${sql.insert(row)}`
    }),
    // An older key may be used again.
    forgetKey: SqlSchema.void({
      Request: Keyed,
      execute: ({ developerId, key, since }) => sql`
        update checkouts set idempotency_key = null
        where developer_id = ${developerId} and idempotency_key = ${key}
          and created_at <= ${since}`
    }),
    findByKey: SqlSchema.findOneOption({
      Request: Keyed,
      Result: CheckoutRow,
      execute: ({ developerId, key }) => sql`
        select ${columns} from checkouts
        where developer_id = ${developerId} and idempotency_key = ${key}`
    }),
    find: SqlSchema.findOneOption({
      Request: CheckoutId,
      Result: CheckoutRow,
      execute: (id) => sql`select ${columns} from checkouts where id = ${id}`
    }),
    findByPayment: SqlSchema.findOneOption({
      Request: Schema.String,
      Result: CheckoutRow,
      execute: (paymentId) => sql`select ${columns} from checkouts where payment_id = ${paymentId}`
    }),
    listExpired: SqlSchema.findAll({
      Request: Schema.Struct({ now: Time, limit: Schema.Int }),
      Result: CheckoutRow,
      execute: ({ limit, now }) => sql`
        select ${columns} from checkouts where status = 'open' and expires_at <= ${now}
        order by expires_at limit ${limit}`
    })
  }
}

const changes = (sql: SqlClient.SqlClient) => ({
  setSession: SqlSchema.void({
    Request: Schema.Struct({ id: CheckoutId, sessionId: Schema.String, url: Schema.String }),
    execute: ({ id, sessionId, url }) => sql`
      update checkouts set session_id = ${sessionId}, url = ${url}
      where id = ${id} and session_id is null`
  }),
  setPaid: SqlSchema.void({
    Request: Schema.Struct({ id: CheckoutId, paymentId: Schema.NullOr(Schema.String) }),
    execute: ({ id, paymentId }) => sql`
      update checkouts set status = 'paid', payment_id = ${paymentId} where id = ${id}`
  }),
  setEnded: SqlSchema.void({
    Request: Schema.Struct({ id: CheckoutId, status: Schema.Literals(["expired", "failed"]) }),
    execute: ({ id, status }) => sql`
      update checkouts set status = ${status} where id = ${id} and status = 'open'`
  })
})

const returns = (sql: SqlClient.SqlClient) => {
  const columns = sql.literal("id, payment_id, kind, amount::text, is_taken, is_final, updated_at")
  return {
    lockPayment: SqlSchema.void({
      Request: Schema.String,
      execute: (id) => sql`
        select pg_advisory_xact_lock(hashtextextended(${`payment:${id}`}::text, 0))`
    }),
    putReturn: SqlSchema.void({
      Request: ReturnRow,
      execute: (row) => sql`
        insert into payment_returns as r ${sql.insert(row)}
        on conflict (id) do update set is_taken = excluded.is_taken, is_final = excluded.is_final,
          updated_at = excluded.updated_at
        where not r.is_final`
    }),
    returnsOf: SqlSchema.findAll({
      Request: Schema.String,
      Result: ReturnRow,
      execute: (paymentId) => sql`
        select ${columns} from payment_returns where payment_id = ${paymentId} order by id`
    }),
    sweepReturns: SqlSchema.void({
      Request: Time,
      execute: (before) => sql`
        delete from payment_returns r where updated_at <= ${before}
          and not exists (select from checkouts c where c.payment_id = r.payment_id)`
    })
  }
}

const reconciliation = (sql: SqlClient.SqlClient) => ({
  reconciledUntil: SqlSchema.findOneOption({
    Request: Schema.Void,
    Result: Schema.Struct({ until: Time }),
    execute: () => sql`select reconciled_until as until from payment_reconciliation`
  }),
  setReconciled: SqlSchema.void({
    Request: Time,
    execute: (until) => sql`
      insert into payment_reconciliation as r (reconciled_until) values (${until})
      on conflict (id) do update
        set reconciled_until = greatest(r.reconciled_until, excluded.reconciled_until)`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { find, findByKey, findByPayment, forgetKey, insert, listExpired } = checkouts(sql)
  const { setEnded, setPaid, setSession } = changes(sql)
  const { lockPayment, putReturn, returnsOf, sweepReturns } = returns(sql)
  const { reconciledUntil, setReconciled } = reconciliation(sql)
  return {
    insert: (row: typeof NewCheckoutRow.Type) => orDieWithTimeout(insert(row)),
    find: (id: CheckoutId) => orDieWithTimeout(find(id)),
    /** The checkout of an idempotency key; run it within a transaction that locks the developer. */
    findByKey: (request: typeof Keyed.Type) =>
      Effect.andThen(orDieWithTimeout(forgetKey(request)), orDieWithTimeout(findByKey(request))),
    findByPayment: (paymentId: string) => orDieWithTimeout(findByPayment(paymentId)),
    listExpired: (request: Parameters<typeof listExpired>[0]) =>
      orDieWithTimeout(listExpired(request)),
    setSession: (request: Parameters<typeof setSession>[0]) =>
      orDieWithTimeout(setSession(request)),
    setPaid: (request: Parameters<typeof setPaid>[0]) => orDieWithTimeout(setPaid(request)),
    setEnded: (request: Parameters<typeof setEnded>[0]) => orDieWithTimeout(setEnded(request)),
    /** Locks a payment until the transaction ends, also one that no checkout names yet. */
    lockPayment: (id: string) => orDieWithTimeout(lockPayment(id)),
    /** Stores the state of a refund or dispute, unless a final one is stored. */
    putReturn: (row: ReturnRow) => orDieWithTimeout(putReturn(row)),
    returnsOf: (paymentId: string) => orDieWithTimeout(returnsOf(paymentId)),
    /** Deletes refunds and disputes of payments that are not ours. */
    sweepReturns: (before: typeof Time.Type) => Effect.orDie(sweepReturns(before)),
    /** Claims the reconciliation until a time; false if another process has it. */
    claim: sweepClaim(sql, "payments").claim,
    reconciledUntil: orDieWithTimeout(reconciledUntil(undefined)),
    setReconciled: (until: typeof Time.Type) => orDieWithTimeout(setReconciled(until))
  }
})

/** Repository of `checkouts`, `payment_returns` and `payment_reconciliation`. */
export class CheckoutRepository extends Context.Service<CheckoutRepository>()(
  "sql/money/checkouts/CheckoutRepository",
  { make }
) {
  static readonly layer = Layer.effect(CheckoutRepository, this.make)
}
