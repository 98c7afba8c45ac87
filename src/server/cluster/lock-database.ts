/** The database of the runner list and the shard locks: the service's own, or a separate one. */
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { type DatabaseStartError, startDatabase } from "#server/platform/database-start"
import { Settings } from "#server/platform/settings/settings"

export const lockDatabaseVariable = "SVC_LOCK_DATABASE_URL"

/**
 * Connections to the lock database. One session holds the locks; the others read and change the
 * list.
 */
export const lockConnections = 3

export const LockDatabaseLive: Layer.Layer<
  SqlClient.SqlClient,
  DatabaseStartError,
  Settings | SqlClient.SqlClient
> = Layer.unwrap(
  Effect.gen(function* () {
    const { lockDatabaseUrl: url } = yield* Settings
    if (url === undefined) return Layer.succeed(SqlClient.SqlClient, yield* SqlClient.SqlClient)
    // Effect Cluster's storage makes its own tables.
    return startDatabase({ variable: lockDatabaseVariable, url, prepare: Effect.void }).pipe(
      Layer.provideMerge(poolLayer({ url, connections: lockConnections }))
    )
  })
)
