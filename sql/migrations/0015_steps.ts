/** What an external sign-in leaves for its next step: each is taken once, in time. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // `player_id`: the player that the identity is to be linked to.
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
