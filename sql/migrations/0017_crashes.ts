/** Detection of a crash that emptied the unlogged `rooms` table, and a cheaper seat look-up. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // One row, which a crash deletes together with the rooms. Activations with an older epoch than the
  // new row's were live during the crash, so they may write their missing rows again.
  yield* sql`
    create unlogged table rooms_begun (
      sole boolean primary key default true check (sole),
      epoch bigint not null
    )`
  // With fastupdate, every seat look-up would also scan the pending list of the index.
  yield* sql`alter index rooms_members set (fastupdate = off)`
  yield* sql`select gin_clean_pending_list('rooms_members')`
})
