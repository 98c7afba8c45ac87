/**
 * Start of a database: waits until it is reachable. It refuses a pooler that gives each transaction
 * another session, because shard locks and LISTEN belong to one session.
 */
import { PgConnection } from "@effect/sql-pg"
import { Effect, Layer, type Redacted, Schedule, Schema } from "effect"
import { Migrator, SqlError } from "effect/sql"
import { causeOf, isDenied, isUnreachable, lacksConnections, refusesTls } from "#sql/database"
import { Settings } from "./settings/settings.ts"

/** Error for an unusable database. The message names the reason and the remedy. */
export class DatabaseStartError extends Schema.TaggedError<DatabaseStartError>()(
  "DatabaseStartError",
  { message: Schema.String }
) {}

/** Name of the Postgres in the data directory, in place of the variable of another one. */
export const embeddedName = "embedded Postgres"

/** Attempts to reach the database, one second apart. */
const startAttempts = 30

type Session = Pick<PgConnection.PgConnection, "query">

const backendOf = (session: Session) =>
  Effect.map(session.query("select pg_backend_pid() as pid", [], false), ({ rows }) =>
    Number(rows[0]?.["pid"])
  )

/**
 * Returns whether a pooler shares server sessions between these client sessions. Then both get the
 * same one, or a session gets another one while the second holds the first one's in a transaction.
 */
export const sharesSessions = Effect.fnUntraced(function* (first: Session, second: Session) {
  const before = yield* backendOf(first)
  yield* second.query("begin", [], false)
  const other = yield* backendOf(second)
  // A pool of one session could not reply while the transaction holds it.
  const isShared = before === other || before !== (yield* backendOf(first))
  yield* second.query("rollback", [], false)
  return isShared
})

const refusePooler = Effect.fnUntraced(function* (variable: string, url: Redacted.Redacted) {
  const options = { url, connectTimeout: 3000 }
  const first = yield* PgConnection.make(options)
  const second = yield* PgConnection.make(options)
  if (!(yield* sharesSessions(first, second))) return
  return yield* new DatabaseStartError({
    message:
      `${variable} leads through a pooler that gives each transaction another session. Shard locks ` +
      "and notifications need a session of their own: connect to Postgres directly, or set the pooler " +
      "to session mode (pool_mode = session)."
  })
}, Effect.scoped)

const startError = (message: string) => Effect.fail(new DatabaseStartError({ message }))

/** Explains a start that failed for good. Errors that are no fault of the operator are defects. */
export const explain = (variable: string) => (error: unknown) => {
  if (lacksConnections(error)) {
    return startError(
      `Failed to connect to the ${nameOf(variable)}: no connection is left. Set its ` +
        "max_connections higher, or SVC_DATABASE_CONNECTIONS of every runner lower."
    )
  }
  if (!SqlError.isSqlError(error)) return Effect.die(error)
  const reason = causeOf(error)
  if (refusesTls(error)) {
    return startError(
      `Failed to connect to the ${nameOf(variable)} with TLS: ${reason}. Turn TLS on there, name its ` +
        "authority in NODE_EXTRA_CA_CERTS, or set sslmode=disable."
    )
  }
  if (isDenied(error)) {
    return startError(
      `Failed to connect to the ${nameOf(variable)}: ${reason}. Correct the user, password and ` +
        `database of ${variable}, or the rights of that user.`
    )
  }
  if (!isUnreachable(error)) return Effect.die(error)
  return startError(`Failed to reach the ${nameOf(variable)}: ${reason}`)
}

const isTransient = (error: unknown): error is SqlError.SqlError =>
  isUnreachable(error) && !refusesTls(error)

/** The error of a database that went away, also one in the middle of a migration. */
const awayErrorOf = (error: unknown): SqlError.SqlError | undefined => {
  const cause = error instanceof Migrator.MigrationError ? error.cause : error
  return isTransient(cause) ? cause : undefined
}

/** Whether a start failed for a reason that the operator reads. */
export const isStartError = Schema.is(DatabaseStartError)

/** The database as messages name it. */
const nameOf = (variable: string): string =>
  variable === embeddedName ? embeddedName : `Postgres of ${variable}`

/**
 * Runs work of the start, and repeats it while the database is away: on a busy machine a single connection
 * may time out. The work must do no harm when it runs twice.
 */
export const retryWhileAway = <A, E, R>(
  variable: string,
  work: Effect.Effect<A, E | SqlError.SqlError, R>
): Effect.Effect<A, E | DatabaseStartError, R> =>
  work.pipe(
    Effect.catchDefect((defect): Effect.Effect<never, SqlError.SqlError> => {
      const away = awayErrorOf(defect)
      return away === undefined ? Effect.die(defect) : Effect.fail(away)
    }),
    Effect.mapError((error) => awayErrorOf(error) ?? error),
    Effect.tapError((error) =>
      isTransient(error)
        ? Effect.logWarning(`Waiting for the ${nameOf(variable)}: ${causeOf(error)}`)
        : Effect.void
    ),
    Effect.retry({ while: isTransient, schedule: Schedule.spaced(1000), times: startAttempts }),
    Effect.catch((error): Effect.Effect<never, E | DatabaseStartError> =>
      SqlError.isSqlError(error) ? explain(variable)(error) : Effect.fail(error)
    )
  )

/** As {@link retryWhileAway}, for the database of the settings. */
export const awaitDatabase = <A, E, R>(work: Effect.Effect<A, E | SqlError.SqlError, R>) =>
  Effect.flatMap(Settings, ({ databaseUrl }) =>
    retryWhileAway(databaseUrl === undefined ? embeddedName : "DATABASE_URL", work)
  )

/** Waits for the database behind a variable, checks how it is reached, and prepares it. */
export const startDatabase = <E, R>(options: {
  readonly variable: string
  readonly url: Redacted.Redacted
  readonly prepare: Effect.Effect<void, E, R>
}) =>
  Layer.effectDiscard(
    retryWhileAway(
      options.variable,
      Effect.andThen(refusePooler(options.variable, options.url), options.prepare)
    ).pipe(
      Effect.catchIf(
        (error): error is Exclude<typeof error, DatabaseStartError> => !isStartError(error),
        explain(options.variable)
      )
    )
  )
