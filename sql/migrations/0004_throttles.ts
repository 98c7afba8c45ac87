/** Token buckets shared by all nodes. Unlogged: a lost bucket is merely full again. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create unlogged table throttles (
      key text primary key,
      full_at float8 not null,
      granted int not null
    ) with (fillfactor = 70)`
})
