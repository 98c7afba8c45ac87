/**
 * Sliding windows of rate limits, shared by all nodes: the times of the last requests of each key.
 * Unlogged: a crash of Postgres empties the windows.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create unlogged table rate_windows (
      key text primary key,
      request_limit int not null,
      window_millis float8 not null,
      taken float8[] not null,
      granted boolean not null
    ) with (fillfactor = 70)`
  // Compressing and moving 600 times out of the row takes longer than writing them.
  yield* sql`alter table rate_windows alter column taken set storage plain`
})
