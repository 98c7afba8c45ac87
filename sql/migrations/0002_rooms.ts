/** Live rooms: snapshots and the room list. Unlogged, since a room must survive runners, not Postgres. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create sequence entity_epochs`
  yield* sql`
    create unlogged table rooms (
      id text primary key,
      environment_id text not null,
      epoch bigint not null,
      node text not null,
      code text not null,
      mode text not null,
      listed boolean not null,
      matched boolean not null,
      players int not null,
      max_players int not null,
      metadata text not null,
      created_at timestamptz not null,
      due_at timestamptz not null,
      members text[] not null,
      snapshot text not null
    ) with (fillfactor = 70)`
  yield* sql`create unique index rooms_code on rooms (environment_id, code)`
  yield* sql`
    create index rooms_listed on rooms (environment_id, mode, created_at desc) where listed`
  yield* sql`create index rooms_members on rooms using gin (members)`
  yield* sql`create index rooms_due on rooms (due_at)`
})
