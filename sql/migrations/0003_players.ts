/** Players and their sessions: one row per sign-in, updated in place at each refresh. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table players (
      id text primary key,
      environment_id text not null references environments on delete cascade,
      display_name text not null,
      is_guest boolean not null,
      created_at timestamptz not null
    )`
  yield* sql`create index players_environment on players (environment_id, created_at desc)`
  yield* sql`
    create table sessions (
      id text primary key,
      environment_id text not null references environments on delete cascade,
      player_id text not null references players on delete cascade,
      token_hash text not null,
      parent_hash text,
      rotated_at timestamptz not null,
      expires_at timestamptz not null,
      created_at timestamptz not null,
      revoked_at timestamptz
    ) with (fillfactor = 80)`
  yield* sql`create index sessions_player on sessions (player_id)`
})
