/** Whether the operator has closed the sign-up of developers, beside what the settings say. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table closed_signups (
      id int primary key default 1 check (id = 1),
      closed_at timestamptz not null
    )`
})
