/**
 * Unreachable runners, as each runner reports them. The table is unlogged: a runner writes a lost
 * report again within a second.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create unlogged table runner_reports (
      address text primary key,
      unreachable text[] not null,
      pid int not null,
      reported_at timestamptz not null
    ) with (fillfactor = 50)`
})
