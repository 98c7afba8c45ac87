/** Sign-out, which ends the refresh tokens of a session without revoking it: access tokens stay valid. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table sessions add column signed_out_at timestamptz`
})
