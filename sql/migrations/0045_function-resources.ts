/**
 * Whether the service answers pages of other origins for a version of functions, and the resources that only
 * deleted versions bind: their data is kept. A runner of the release before adds none of them.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table function_deployments add column cors boolean not null default true`
  yield* sql`alter table functions add column kept_resources jsonb not null default '[]'`
})
