/**
 * Checkouts, refunds and disputes at the payment provider, and metered usage. Usage names its payer and has
 * no reference to the environment, so that a deleted project is still charged.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const payments = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // `session_id` and `url` are null until the provider has answered.
  yield* sql`
    create table checkouts (
      id text primary key,
      developer_id text not null references developers on delete cascade,
      amount bigint not null,
      status text not null,
      success_url text not null,
      cancel_url text not null,
      idempotency_key text,
      fingerprint text not null,
      session_id text unique,
      url text,
      payment_id text unique,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      unique (developer_id, idempotency_key)
    )`
  yield* sql`create index checkouts_open on checkouts (expires_at) where status = 'open'`
  // A refund or dispute may arrive before its payment. A final one changes no more.
  yield* sql`
    create table payment_returns (
      id text primary key,
      payment_id text not null,
      kind text not null,
      amount bigint not null,
      is_taken boolean not null,
      is_final boolean not null,
      updated_at timestamptz not null
    )`
  yield* sql`create index payment_returns_payment on payment_returns (payment_id)`
  yield* sql`
    create table payment_reconciliation (
      id int primary key default 1 check (id = 1),
      reconciled_until timestamptz not null
    )`
})

const usage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table usage_counters (
      environment_id text not null,
      period text not null,
      component text not null,
      developer_id text not null references developers on delete cascade,
      quantity numeric not null,
      primary key (environment_id, period, component)
    )`
  yield* sql`create index usage_counters_developer on usage_counters (developer_id, period)`
  // Batches of counts that are stored, so that a repeated one counts once.
  yield* sql`
    create table usage_batches (
      id text primary key,
      created_at timestamptz not null
    )`
  yield* sql`create index usage_batches_age on usage_batches (created_at)`
  yield* sql`
    create table usage_periods (
      developer_id text not null references developers,
      period text not null,
      report text not null,
      carried_micro_usd bigint not null,
      closed_at timestamptz not null,
      primary key (developer_id, period)
    )`
})

export default Effect.andThen(payments, usage)
