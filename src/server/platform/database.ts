/** The database that the settings name, or the embedded one of the data directory. */
import { NodeServices } from "@effect/platform-node"
import { DateTime, type Duration, Effect, Layer, Schedule } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { databaseLayer } from "#sql/database"
import { embeddedPostgres } from "./postgres/embedded.ts"
import { Settings } from "./settings/settings.ts"

/** A migrated database. The embedded one is left before the process ends. */
export const DatabaseLive = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir, databaseConnections, databaseUrl } = yield* Settings
    const url = databaseUrl ?? (yield* embeddedPostgres({ dataDir }))
    return databaseLayer({ url, connections: databaseConnections })
  })
).pipe(Layer.provide(NodeServices.layer))

/** A transaction that fails for no reason of the database. */
export const makeTransaction = Effect.map(
  SqlClient.SqlClient,
  (sql) =>
    <A, E, R>(work: Effect.Effect<A, E, R>) =>
      Effect.catchIf(sql.withTransaction(work), SqlError.isSqlError, Effect.die)
)

type Sweep = (now: DateTime.Utc) => Effect.Effect<void>

const sweeping = (period: Duration.Input) => (what: string, sweep: Sweep) =>
  Effect.flatMap(DateTime.now, sweep).pipe(
    Effect.tapDefect((defect) => Effect.logWarning(`${what} were not swept`, defect)),
    Effect.exit,
    Effect.repeat(Schedule.spaced(period)),
    Effect.forkScoped
  )

/** Runs a statement that forgets what is old, now and every hour. It fails without consequences. */
export const sweepHourly = sweeping("1 hour")

/** The same, now and every day. */
export const sweepDaily = sweeping("1 day")
