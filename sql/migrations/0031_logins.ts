/** OAuth flows of developers. A flow consumes its row once, before it expires. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // A flow that a session started ends with the session.
  yield* sql`
    create table developer_flows (
      hash text primary key,
      provider text not null,
      intent text not null,
      developer_id text references developers on delete cascade,
      session_id text references developer_sessions on delete cascade,
      sealed text not null,
      expires_at timestamptz not null
    )`
  yield* sql`create index developer_flows_developer on developer_flows (developer_id)`
  yield* sql`create index developer_flows_session on developer_flows (session_id)`
  yield* sql`create index developer_flows_expiry on developer_flows (expires_at)`
})
