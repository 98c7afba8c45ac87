/** One-time links that sign in the developer of the demo project, outside production only. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table sign_in_links (
      hash text primary key,
      expires_at timestamptz not null
    )`
})
