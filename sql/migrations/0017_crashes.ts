/** Whether a crash has emptied the table of rooms, and a cheaper way to a player's seat. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // One row, which a crash takes away together with the rooms: activations of an older epoch than
  // this were there when it happened, and may write rows that are missing.
  yield* sql`
    create unlogged table rooms_begun (
      sole boolean primary key default true check (sole),
      epoch bigint not null
    )`
  // Every look-up of a seat would read through the list of what the index has yet to take in.
  yield* sql`alter index rooms_members set (fastupdate = off)`
  yield* sql`select gin_clean_pending_list('rooms_members')`
})
