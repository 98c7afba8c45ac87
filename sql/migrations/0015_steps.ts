/**
 * State of external sign-ins between their steps. A sign-in consumes each row once, before it
 * expires.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // `player_id`: the player to link the identity to.
  yield* sql`
    create table sign_in_steps (
      hash text primary key,
      environment_id text not null references environments on delete cascade,
      provider text not null,
      player_id text references players on delete cascade,
      sealed text not null,
      expires_at timestamptz not null
    )`
  yield* sql`create index sign_in_steps_player on sign_in_steps (player_id)`
  yield* sql`create index sign_in_steps_expiry on sign_in_steps (expires_at)`
})
