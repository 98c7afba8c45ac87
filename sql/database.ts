/**
 * The connection to Postgres: a pool of sessions whose rows come in camelCase, brought up to the
 * newest migration before anybody uses it. Several processes may start at once; the migrator holds a
 * table lock, so each migration runs exactly once.
 *
 * Time is never the database's: expiry and order use the time of Effect's Clock, passed as a
 * parameter, so that tests run on virtual time.
 */
import { NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import {
  Clock,
  Effect,
  Layer,
  Metric,
  Path,
  Predicate,
  type Redacted,
  Schedule,
  String
} from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import * as Migrator from "effect/sql/Migrator"
import * as MigratorFileSystem from "effect/sql/MigratorFileSystem"

/** How to reach the database. */
export interface DatabaseOptions {
  readonly url: Redacted.Redacted
  /** The most sessions for statements; a listener has one of its own. */
  readonly connections: number
}

/** A statement that has no answer after this long, the wait for a session included, has failed. */
const statementMillis = 5000

/** How often a database that does not answer yet is tried at start, a second apart. */
const startAttempts = 30

/** The SQLSTATE that the database answered with, if it did. */
const stateOf = ({ reason: { cause } }: SqlError.SqlError): string =>
  Predicate.isObject(cause) && "code" in cause ? `${cause.code}` : ""

/** SQLSTATEs of a server that stops, has crashed, starts, or has no connection (or disk) to spare. */
const awayForm = /^(?:57P0[123]|53)/

/** Whether a failure says that the database cannot be reached, rather than that it refused. */
export const isUnreachable = (failure: unknown): boolean =>
  SqlError.isSqlError(failure) &&
  (failure.reason._tag === "ConnectionError" || awayForm.test(stateOf(failure)))

/** The constraint that a statement has broken; none when it failed for another reason. */
export const violatedConstraint = (failure: unknown): string | undefined => {
  if (!SqlError.isSqlError(failure)) return undefined
  const { _tag, cause } = failure.reason
  if (_tag !== "ConstraintError" && _tag !== "UniqueViolation") return undefined
  return Predicate.isObject(cause) && "constraint" in cause ? `${cause.constraint}` : ""
}

/** A token outlives its player by up to fifteen minutes: then there is nobody to write for. */
export const isPlayerGone = (failure: unknown): boolean =>
  violatedConstraint(failure)?.endsWith("_player_id_fkey") === true

/** An entity outlives its environment by a moment: then there is nothing to write for. */
export const isEnvironmentGone = (failure: unknown): boolean =>
  violatedConstraint(failure)?.endsWith("_environment_id_fkey") === true

/**
 * SQLSTATEs of a row that comes twice, of data that does not fit, broken constraints and transactions
 * that had to give way.
 */
const refusedForm = /^(?:21|22|23|40)/

/** Whether the database has refused a statement for what it says: then nothing of it was done. */
export const isRefused = (failure: unknown): boolean =>
  SqlError.isSqlError(failure) && refusedForm.test(stateOf(failure))

const noAnswer = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({
    cause: undefined,
    message: `Postgres did not answer within ${statementMillis} ms`
  })
})

/** How long statements take. */
export const statementSeconds = Metric.histogram("svc_database_statement_duration_seconds", {
  description: "How long statements have taken, the wait for a connection included.",
  boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
})

export const statementsUnderWay = Metric.gauge("svc_database_statements", {
  description: "Statements under way, those that wait for a connection included."
})

const nanosPerSecond = 1e9

/** A statement whose time is told. */
export const withStatementMetrics = <A, E, R>(
  statement: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const { context } = fiber
    const clock = fiber.getRef(Clock.Clock)
    const begun = clock.currentTimeNanosUnsafe()
    statementsUnderWay.modifyUnsafe(1, context)
    return Effect.onExit(statement, () =>
      Effect.sync(() => {
        const nanos = clock.currentTimeNanosUnsafe() - begun
        statementsUnderWay.modifyUnsafe(-1, context)
        statementSeconds.updateUnsafe(Number(nanos) / nanosPerSecond, context)
      })
    )
  })

const inTime = <A, E, R, E2>(statement: Effect.Effect<A, E, R>, late: Effect.Effect<never, E2>) =>
  Effect.timeoutOrElse(withStatementMetrics(statement), {
    duration: statementMillis,
    orElse: () => late
  })

/** A statement that never hangs, not even on a frozen server: it fails, for those who try again. */
export const failOnTimeout = <A, E, R>(statement: Effect.Effect<A, E, R>) =>
  inTime(statement, Effect.fail(noAnswer))

/** A statement that never hangs either: it dies. */
export const dieOnTimeout = <A, E, R>(statement: Effect.Effect<A, E, R>) =>
  inTime(statement, Effect.die(noAnswer))

/**
 * A statement whose failure no caller can mend: it dies, and at the edge a lost connection becomes
 * 503 `unavailable`, anything else 500. It never hangs either.
 */
export const orDieWithTimeout = <A, E, R>(
  statement: Effect.Effect<A, E, R>
): Effect.Effect<A, never, R> => Effect.orDie(failOnTimeout(statement))

/** Brings the database to the newest migration. */
export const migrate = Effect.gen(function* () {
  const path = yield* Path.Path
  const directory = yield* path.fromFileUrl(new URL("migrations", import.meta.url))
  const loader = MigratorFileSystem.fromFileSystem(directory)
  yield* Migrator.make({})({ loader, table: "migrations" })
}).pipe(Effect.provide(NodeServices.layer))

/** The pool, without migrations. */
export const poolLayer = ({
  connections,
  url
}: DatabaseOptions): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient> =>
  Layer.orDie(
    PgClient.layer({
      url,
      maxConnections: connections,
      connectTimeout: 3000,
      keepAlive: 5000,
      transformResultNames: String.snakeToCamel,
      transformQueryNames: String.camelToSnake,
      transformJson: false
    })
  )

/** The pool on a database that is up to date. */
export const databaseLayer = (
  options: DatabaseOptions
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient> =>
  Layer.effectDiscard(
    migrate.pipe(
      Effect.tapError((error) =>
        isUnreachable(error)
          ? Effect.logWarning("Waiting for Postgres", error.message)
          : Effect.void
      ),
      Effect.retry({ while: isUnreachable, schedule: Schedule.spaced(1000), times: startAttempts }),
      Effect.orDie
    )
  ).pipe(Layer.provideMerge(poolLayer(options)))
