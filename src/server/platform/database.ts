/** The database: the one of `DATABASE_URL`, or the embedded Postgres in the data directory. */
import { NodeServices } from "@effect/platform-node"
import { DateTime, type Duration, Effect, Layer, Schedule } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { migrate, poolLayer } from "#sql/database"
import { startDatabase } from "./database-start.ts"
import { embeddedPostgres } from "./postgres/embedded.ts"
import { Settings } from "./settings/settings.ts"

/** A migrated database. The embedded Postgres is released when the layer closes. */
export const DatabaseLive = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir, databaseConnections, databaseUrl } = yield* Settings
    const url = databaseUrl ?? (yield* embeddedPostgres({ dataDir }))
    return startDatabase({ variable: "DATABASE_URL", url, prepare: migrate }).pipe(
      Layer.provideMerge(poolLayer({ url, connections: databaseConnections }))
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

/** Deletes expired rows now and every hour; a failure is logged and the next run retries. */
export const sweepHourly = sweepEvery("1 hour")

/** Deletes expired rows now and every day. */
export const sweepDaily = sweepEvery("1 day")
