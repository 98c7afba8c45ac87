/** The setup token that the first developer account of a production deployment needs, as its hash. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // At most one row, so that of several runners that start together only one prints a token.
  yield* sql`
    create table setup_token (
      id int primary key default 1 check (id = 1),
      hash text not null,
      created_at timestamptz not null
    )`
})
