/**
 * Numbers of the writes of rooms and channels within an activation. A runner of the release before does not
 * set them: its claim leaves the number of the activation before, which it does not compare.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table rooms add column write_number bigint not null default 0`
  yield* sql`alter table channels add column write_number bigint not null default 0`
})
