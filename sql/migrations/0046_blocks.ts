/**
 * Blocks of players, and the host of each room, by which lists and codes leave out the rooms of hosts who
 * have blocked the reader. A runner of the release before writes no host.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table blocks (
      environment_id text not null,
      player_id text not null references players on delete cascade,
      blocked_id text not null references players on delete cascade,
      created_at timestamptz not null,
      primary key (player_id, blocked_id)
    )`
  yield* sql`create index blocks_newest on blocks (player_id, created_at desc, blocked_id desc)`
  yield* sql`create index blocks_blocked on blocks (blocked_id)`
  yield* sql`alter table rooms add column host_id text`
})
