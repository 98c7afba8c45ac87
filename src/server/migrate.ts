/** Migrates the database of DATABASE_URL and ends: for a role that owns the tables, before the service starts. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Redacted } from "effect"
import { migrate, migrationLevels, poolLayer, roleRights } from "#sql/database"
import { DatabaseStartError, startDatabase } from "./platform/database-start.ts"
import { database } from "./platform/settings/data.ts"
import { textOf } from "./platform/settings/table.ts"
import { failStart } from "./start-error.ts"

/** Migrates as the owner. Another role may have a schema of its own, and would make all tables there. */
const migrateAsOwner = Effect.gen(function* () {
  const { isForeign } = yield* roleRights
  if (!isForeign) return yield* migrate
  return yield* new DatabaseStartError({
    message:
      "The user of DATABASE_URL does not own the tables, so nothing was migrated. Name their owner: " +
      "svc_owner of deploy/roles.sql."
  })
})

Effect.gen(function* () {
  const text = yield* textOf(database.databaseUrl)
  if (text === undefined) return yield* failStart("DATABASE_URL must name the database.")
  const url = Redacted.make(text)
  const pool = poolLayer({ url, connections: 1 })
  const started = startDatabase({ variable: "DATABASE_URL", url, prepare: migrateAsOwner }).pipe(
    Layer.provideMerge(pool)
  )
  const { applied } = yield* Effect.provide(migrationLevels, yield* Layer.build(started))
  yield* Console.log(`The database is migrated: it is at migration ${applied}.`)
}).pipe(
  Effect.catchTag("DatabaseStartError", ({ message }) => failStart(message)),
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
