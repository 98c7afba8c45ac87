/** Responses to requests with an `Idempotency-Key`, stored in the transaction of their effect. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table idempotency_keys (
      caller text not null,
      path text not null,
      key text not null,
      environment_id text not null references environments on delete cascade,
      fingerprint text not null,
      answer text not null,
      created_at timestamptz not null,
      primary key (caller, path, key)
    )`
  yield* sql`create index idempotency_keys_age on idempotency_keys (created_at)`
  yield* sql`create index idempotency_keys_environment on idempotency_keys (environment_id)`
})
