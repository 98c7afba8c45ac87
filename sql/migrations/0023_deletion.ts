/**
 * Deletion time of a project. A deleted project is closed; `removed_at` is set with the removal of
 * its data.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Not `removed_at`: a runner of the release before would delete the data of such a project at once.
  yield* sql`alter table projects add column deleted_at timestamptz`
  yield* sql`
    create index projects_deleted on projects (deleted_at) where deleted_at is not null`
})
