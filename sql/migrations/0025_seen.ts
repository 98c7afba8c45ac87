/**
 * Time at which a player was last seen, some minutes old. The column has no index, so that updates
 * stay cheap.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table players add column last_seen_at timestamptz`
})
