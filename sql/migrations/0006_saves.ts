/**
 * Cloud saves. A deleted save keeps its row without data, so that its version continues at the next
 * write. `save_counts` counts a player's saves, and its constraint bounds them under concurrent
 * writes. Deleting a player deletes all its rows.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table saves (
      environment_id text not null,
      player_id text not null references players on delete cascade,
      key text not null,
      version int not null,
      data text,
      size int not null,
      updated_at timestamptz not null,
      fresh boolean not null,
      primary key (player_id, environment_id, key)
    ) with (fillfactor = 80)`
  yield* sql`
    create table save_counts (
      environment_id text not null,
      player_id text not null references players on delete cascade,
      saves int not null,
      most int not null,
      deleted int not null,
      floor int not null,
      primary key (player_id, environment_id),
      constraint too_many_saves check (saves <= most)
    ) with (fillfactor = 80)`
})
