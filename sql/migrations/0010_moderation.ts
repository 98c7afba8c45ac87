/**
 * Moderation: sanctions with at most one appeal each, the declared age group of a player, and the ids
 * of deleted players, which are never reused.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table sanctions (
      id text primary key,
      number bigint generated always as identity,
      environment_id text not null,
      player_id text not null references players on delete cascade,
      reason text,
      note text,
      created_at timestamptz not null,
      expires_at timestamptz,
      lifted_at timestamptz,
      appeal_id text unique,
      appeal_message text,
      appeal_status text check (appeal_status in ('open', 'accepted', 'rejected')),
      appeal_response text,
      appealed_at timestamptz,
      resolved_at timestamptz,
      check ((appeal_id is null) = (appeal_status is null))
    )`
  yield* sql`create index sanctions_player on sanctions (player_id, number desc)`
  yield* sql`
    create index sanctions_appeals on sanctions (environment_id, appeal_id)
    where appeal_id is not null`
  // The ban that revoked the session, whose last refresh token may still appeal.
  yield* sql`alter table sessions add column sanction_id text`
  yield* sql`
    alter table players add column declared_age_band text
    check (declared_age_band in ('child', 'teen', 'adult'))`
  yield* sql`
    create table deleted_players (
      id text primary key,
      environment_id text not null references environments on delete cascade,
      deleted_at timestamptz not null
    )`
})
