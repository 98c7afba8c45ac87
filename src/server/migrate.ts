/** Migrates the database of DATABASE_URL and ends: for a role that owns the tables, before the service starts. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Console, Effect, Layer } from "effect"
import { migrate, poolLayer } from "#sql/database"
import { startDatabase } from "./platform/database-start.ts"
import { failStart } from "./start-error.ts"

Effect.gen(function* () {
  const url = yield* Config.Redacted("DATABASE_URL")
  yield* startDatabase({ variable: "DATABASE_URL", url, prepare: migrate }).pipe(
    Layer.provide(poolLayer({ url, connections: 1 })),
    Layer.build
  )
  yield* Console.log("The database is migrated.")
}).pipe(
  Effect.catchTag("ConfigError", () => failStart("DATABASE_URL must name the database.")),
  Effect.catchTag("DatabaseStartError", ({ message }) => failStart(message)),
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
