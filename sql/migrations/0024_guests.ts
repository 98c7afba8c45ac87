/**
 * Expiry of guests. Before this migration the service deleted the sessions of a guest when they
 * expired, so the time of the last one is unknown. Such guests count as expired from today.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table sweep_claims (
      name text primary key,
      claimed_until timestamptz not null
    )`
  yield* sql`
    insert into sessions (id, environment_id, player_id, token_hash, rotated_at, expires_at,
      created_at)
    select 'ses_' || substr(p.id, 4), p.environment_id, p.id, '', now(), now(), p.created_at
    from players p
    where p.is_guest and not exists (select from sessions s where s.player_id = p.id)
    on conflict do nothing`
})
