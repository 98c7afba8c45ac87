/** Time at which the operator suspended voice in an environment; null while voice is allowed. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table environments add column voice_suspended_at timestamptz`
})
