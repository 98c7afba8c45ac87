/**
 * Repeats of requests that spend a secret. A session keeps the hash of the key that rotated it, and
 * `spent_answers` the sealed answers of other requests. A runner of the release before does neither: it
 * leaves the hash of an earlier rotation, which matches no later token.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table sessions add column rotation_key_hash text`
  yield* sql`
    create table spent_answers (
      hash text primary key,
      tenant text not null,
      player_id text references players on delete cascade,
      fingerprint text not null,
      sealed text not null,
      expires_at timestamptz not null
    )`
  yield* sql`create index spent_answers_tenant on spent_answers (tenant, expires_at)`
  yield* sql`create index spent_answers_age on spent_answers (expires_at)`
  yield* sql`create index spent_answers_player on spent_answers (player_id)`
})
