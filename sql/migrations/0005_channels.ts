/**
 * Realtime channels: settings and player lists. Settings and lists of server-managed channels are
 * permanent. Those of channels created by players last as long as the channel. The database never
 * stores members and messages.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table channels (
      environment_id text not null references environments on delete cascade,
      name text not null,
      epoch bigint not null,
      node text not null,
      managed boolean not null,
      due_at timestamptz,
      document text not null,
      primary key (environment_id, name)
    ) with (fillfactor = 80)`
  yield* sql`create index channels_due on channels (due_at) where due_at is not null`
})
