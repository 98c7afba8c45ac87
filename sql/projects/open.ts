/** The condition of a project that is neither deleted nor removed for its owner. */
import type { SqlClient } from "effect/sql"

/** Returns the condition for open projects `p`: neither deleted by a member nor removed. */
export const isOpen = (sql: SqlClient.SqlClient) =>
  sql.literal("p.deleted_at is null and p.removed_at is null")
