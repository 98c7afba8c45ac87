/** Credentials of sign-in providers, encrypted with the master key; only the client id is plain text. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table provider_credentials (
      environment_id text not null references environments on delete cascade,
      provider text not null,
      client_id text not null,
      sealed text not null,
      updated_at timestamptz not null,
      primary key (environment_id, provider)
    )`
})
