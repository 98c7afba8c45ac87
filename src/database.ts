/** The database that the settings name, or the embedded one of the data directory. */
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { databaseLayer } from "#sql/database"
import { embeddedPostgres } from "./postgres/embedded.ts"
import { Settings } from "./settings.ts"

/** A migrated database. The embedded one is left before the process ends. */
export const DatabaseLive = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir, databaseConnections, databaseUrl } = yield* Settings
    const url = databaseUrl ?? (yield* embeddedPostgres({ dataDir }))
    return databaseLayer({ url, connections: databaseConnections })
  })
).pipe(Layer.provide(NodeServices.layer))
