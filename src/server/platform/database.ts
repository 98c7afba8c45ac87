/** The database: the one of `DATABASE_URL`, or the embedded Postgres in the data directory. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, DateTime, type Duration, Effect, Layer, Schedule } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { migrate, migrationLevels, roleRights } from "#sql/database"
import { sharedPoolLayer } from "./database-pool.ts"
import {
  DatabaseStartError,
  embeddedName,
  retryWhileAway,
  startDatabase
} from "./database-start.ts"
import { embeddedPostgres } from "./postgres/embedded.ts"
import { Settings } from "./settings/settings.ts"

/** Migrates the database, or checks that the owner of its tables has done so. */
const prepare = Effect.gen(function* () {
  const { production } = yield* Settings
  const { isForeign, isSuperuser } = yield* roleRights
  if (production && isSuperuser) {
    yield* Effect.logWarning(
      "The user of DATABASE_URL is a superuser: a fault of the service would reach every database and " +
        "the files of that server, and could rewrite the audit log. Use two roles: deploy/roles.sql"
    )
  }
  if (!isForeign) return yield* migrate
  const { applied, required } = yield* migrationLevels
  if (applied >= required) return
  return yield* new DatabaseStartError({
    message:
      `The database is at migration ${applied}, this release needs ${required}, and the user of ` +
      "DATABASE_URL does not own the tables. Migrate as their owner: node src/server/migrate.ts"
  })
})

/** State of the embedded Postgres; undefined with another database. */
export const EmbeddedState = Context.Reference<() => "running" | "restarting" | undefined>(
  "server/platform/database/EmbeddedState",
  { defaultValue: () => () => undefined }
)

/** Migrated database. The layer releases the embedded Postgres when it closes. */
export const DatabaseLive = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir, databaseConnections, databaseUrl } = yield* Settings
    if (databaseUrl !== undefined) {
      const start = startDatabase({ variable: "DATABASE_URL", url: databaseUrl, prepare })
      const options = { url: databaseUrl, connections: databaseConnections }
      return Layer.provideMerge(start, sharedPoolLayer(options))
    }
    const { connect, isRestarting, url } = yield* embeddedPostgres({ dataDir })
    // No pooler stands before the embedded Postgres.
    return Layer.effectDiscard(retryWhileAway(embeddedName, migrate)).pipe(
      Layer.provideMerge(
        sharedPoolLayer({ url, connections: databaseConnections, stream: connect })
      ),
      Layer.merge(Layer.succeed(EmbeddedState, () => (isRestarting() ? "restarting" : "running")))
    )
  })
).pipe(Layer.provide(NodeServices.layer))

/** Runs work in a transaction; database errors become defects. */
export const makeTransaction = Effect.map(
  SqlClient.SqlClient,
  (sql) =>
    <A, E, R>(work: Effect.Effect<A, E, R>) =>
      Effect.catchIf(sql.withTransaction(work), SqlError.isSqlError, Effect.die)
)

type Sweep = (now: DateTime.Utc) => Effect.Effect<void>

const sweepEvery = (period: Duration.Input) => (what: string, sweep: Sweep) =>
  Effect.flatMap(DateTime.now, sweep).pipe(
    Effect.tapDefect((defect) => Effect.logWarning(`Failed to sweep: ${what}`, defect)),
    Effect.exit,
    Effect.repeat(Schedule.spaced(period)),
    Effect.forkScoped
  )

/** Deletes expired rows now and every hour. It logs a failure, and the next run retries. */
export const sweepHourly = sweepEvery("1 hour")

/** Deletes expired rows now and every day. */
export const sweepDaily = sweepEvery("1 day")
