/**
 * Reports of the nodes about themselves: load, rooms, version. Unlogged, since a report is valid for
 * seconds only.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create unlogged table node_reports (
      node text primary key,
      reported_at timestamptz not null,
      document text not null
    ) with (fillfactor = 70)`
})
