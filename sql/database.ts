/**
 * Connection pool to Postgres, and its migrations; rows have camelCase names. Several processes may
 * migrate at once: the migrator holds a table lock, so each migration runs exactly once.
 *
 * Statements never use the database's clock. Expiry and order use Effect's Clock, passed as a parameter,
 * so that tests run on virtual time.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { PgClient, type PgConnection } from "@effect/sql-pg"
import { Clock, Effect, Layer, Metric, Path, Predicate, Redacted, Schema, String } from "effect"
import { SqlClient, SqlError, SqlSchema } from "effect/sql"
import * as Migrator from "effect/sql/Migrator"
import * as MigratorFileSystem from "effect/sql/MigratorFileSystem"
import { withConnectionPermit, withSharedTransactions } from "./connection-shares.ts"

/** Address and parameters of the database connections. */
export interface DatabaseOptions {
  readonly url: Redacted.Redacted
  /** Size of the pool; the session that listens for notifications is not part of it. */
  readonly connections: number
  /** Opens a connection to a server whose address may change; by default, to that of the URL. */
  readonly stream?: PgConnection.Config["stream"]
}

/** Longest row that the server may send: the largest save that settings allow is 64 MiB. */
const rowMaxBytes = 128 * 1024 * 1024

/** Timeout of a statement, including the wait for a connection. */
const statementMillis = 5000

/** The SQLSTATE of the error; empty without one. */
const stateOf = ({ reason: { cause } }: SqlError.SqlError): string =>
  Predicate.isObject(cause) && "code" in cause ? `${cause.code}` : ""

/** SQLSTATEs of a server that stops, has crashed, starts, or lacks connections or disk. */
const awayForm = /^(?:57P0[123]|53)/

/** Whether the database could not be reached, rather than refused the statement. */
export const isUnreachable = (failure: unknown): boolean =>
  SqlError.isSqlError(failure) &&
  (failure.reason._tag === "ConnectionError" || awayForm.test(stateOf(failure)))

/** Logs a failure; a database that is away is a warning, since nothing here is at fault. */
export const logFailure = (message: string, failure: unknown, cause = failure) =>
  isUnreachable(failure)
    ? Effect.logWarning("Failed to reach the database", `${failure}`)
    : Effect.logError(message, cause)

/** SQLSTATEs of a wrong user or password, a missing database and missing rights. */
const deniedForm = /^(?:28...|3D000|42501)$/

/** Whether the server refused the role, the password, the database or the rights of the role. */
export const isDenied = (failure: unknown): boolean =>
  SqlError.isSqlError(failure) && deniedForm.test(stateOf(failure))

/** Whether the server has no TLS, or a certificate that is not trusted. */
export const refusesTls = (failure: unknown): boolean =>
  SqlError.isSqlError(failure) &&
  failure.reason._tag === "ConnectionError" &&
  /TLS|CERT|SELF_SIGNED/.test(`${failure.reason.message} ${stateOf(failure)}`)

/** Returns the message of the server or the socket. A client's message names the operation only. */
export const causeOf = ({ reason: { cause, message } }: SqlError.SqlError): string => {
  // A name with several addresses, such as localhost: the error itself has no message.
  if (cause instanceof AggregateError)
    return cause.errors.map(({ message: each }) => each).join(", ")
  return cause instanceof Error ? cause.message : message
}

/** Whether the server, the database or the role has no connection left. */
export const lacksConnections = (failure: unknown): boolean =>
  SqlError.isSqlError(failure) && stateOf(failure) === "53300"

/** Whether the statement waited too long for a lock of another session. */
export const isLocked = (failure: unknown): boolean =>
  SqlError.isSqlError(failure) && stateOf(failure) === "55P03"

/** The constraint that the statement violated; undefined if it failed for another reason. */
export const violatedConstraint = (failure: unknown): string | undefined => {
  if (!SqlError.isSqlError(failure)) return undefined
  const { _tag, cause } = failure.reason
  if (_tag !== "ConstraintError" && _tag !== "UniqueViolation") return undefined
  return Predicate.isObject(cause) && "constraint" in cause ? `${cause.constraint}` : ""
}

/** Whether the player was deleted; its access token outlives it by up to 15 minutes. */
export const isPlayerGone = (failure: unknown): boolean =>
  violatedConstraint(failure)?.endsWith("_player_id_fkey") === true

/** Whether the session of a developer has ended, with the rows that belong to it. */
export const isDeveloperSessionGone = (failure: unknown): boolean =>
  /_(?:developer|session)_id_fkey$/.test(violatedConstraint(failure) ?? "")

/** Whether the environment was deleted; an entity may outlive it for a moment. */
export const isEnvironmentGone = (failure: unknown): boolean =>
  violatedConstraint(failure)?.endsWith("_environment_id_fkey") === true

/** SQLSTATEs of duplicate rows, invalid data, violated constraints and serialization failures. */
const refusedForm = /^(?:21|22|23|40)/

/** Whether the database refused the statement for its content; nothing of it was written. */
export const isRefused = (failure: unknown): boolean =>
  SqlError.isSqlError(failure) && refusedForm.test(stateOf(failure))

const noResponse = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({
    cause: undefined,
    message: `Postgres did not answer within ${statementMillis} ms`
  })
})

export const statementSeconds = Metric.histogram("svc_database_statement_duration_seconds", {
  description: "Duration of statements, including the wait for a connection.",
  boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
})

export const statementsUnderWay = Metric.gauge("svc_database_statements", {
  description: "Statements in flight, including those that wait for a connection."
})

const nanosPerSecond = 1e9

/** Records the duration of a statement. */
export const withStatementMetrics = <A, E, R>(
  statement: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const { context } = fiber
    const clock = fiber.getRef(Clock.Clock)
    const startedAt = clock.currentTimeNanosUnsafe()
    statementsUnderWay.modifyUnsafe(1, context)
    return Effect.onExit(statement, () =>
      Effect.sync(() => {
        const nanos = clock.currentTimeNanosUnsafe() - startedAt
        statementsUnderWay.modifyUnsafe(-1, context)
        statementSeconds.updateUnsafe(Number(nanos) / nanosPerSecond, context)
      })
    )
  })

/** Fails when the statement times out, even on a frozen server. It is for callers that retry. */
export const failOnTimeout = <A, E, R>(statement: Effect.Effect<A, E, R>) =>
  Effect.timeoutOrElse(withStatementMetrics(withConnectionPermit(statement)), {
    duration: statementMillis,
    orElse: () => Effect.fail(noResponse)
  })

/** Dies when the transaction times out. */
export const dieOnTimeout = <A, E, R>(transaction: Effect.Effect<A, E, R>) =>
  Effect.timeoutOrElse(withStatementMetrics(transaction), {
    duration: statementMillis,
    orElse: () => Effect.die(noResponse)
  })

/**
 * Dies when the statement fails or times out: no caller can handle that. The HTTP middleware turns a
 * lost connection into 503 `unavailable`, any other defect into 500.
 */
export const orDieWithTimeout = <A, E, R>(
  statement: Effect.Effect<A, E, R>
): Effect.Effect<A, never, R> => Effect.orDie(failOnTimeout(statement))

const Limit = Schema.Struct({ connections: Schema.Int })

/** Most connections that the server, this database and this role allow together. */
export const connectionLimit = (sql: SqlClient.SqlClient): Effect.Effect<number> => {
  const limit = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Limit,
    // `reserved_connections` exists since Postgres 16.
    execute: () => sql`
      select least(
        current_setting('max_connections')::int
          - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true)::int, 0),
        (select nullif(datconnlimit, -1) from pg_database where datname = current_database()),
        (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user)
      ) as connections`
  })
  return Effect.map(orDieWithTimeout(limit(undefined)), ({ connections }) => connections)
}

const table = "migrations"

const loader = Effect.gen(function* () {
  const path = yield* Path.Path
  const directory = yield* Effect.orDie(path.fromFileUrl(new URL("migrations", import.meta.url)))
  return yield* MigratorFileSystem.fromFileSystem(directory)
})

/** The newest migration of this release. */
export const newestMigration = Effect.map(loader, (known) =>
  Math.max(...known.map(([id]) => id))
).pipe(Effect.provide(NodeServices.layer))

/** Applies the migrations up to one: a restored backup has the tables of its release. */
export const migrateTo = (newest: number) =>
  Migrator.make({})({
    loader: Effect.map(loader, (known) => known.filter(([id]) => id <= newest)),
    table
  }).pipe(Effect.asVoid, Effect.provide(NodeServices.layer))

/** Applies the missing migrations. */
export const migrate = Migrator.make({})({ loader, table }).pipe(
  Effect.asVoid,
  Effect.provide(NodeServices.layer)
)

const Rights = Schema.Struct({
  /** The tables exist, and another role owns them. */
  isForeign: Schema.Boolean,
  isSuperuser: Schema.Boolean
})

/** Rights of the current role that decide how a service starts. */
export const roleRights = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rights = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Rights,
    execute: () => sql`
      select rolsuper as is_superuser, not coalesce(
        (select pg_has_role(relowner, 'usage') from pg_class where oid = to_regclass(${table})), true
      ) as is_foreign
      from pg_roles where rolname = current_user`
  })
  return yield* rights(undefined)
})

/** The newest migration of the database, and of this release. */
export const migrationLevels = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly id: number }>`
    select coalesce(max(migration_id), 0) as id from ${sql(table)}`
  const known = yield* loader
  return { applied: row?.id ?? 0, required: Math.max(...known.map(([id]) => id)) }
}).pipe(Effect.provide(NodeServices.layer))

/** The parts of the URL that spans name; the client takes them from fields alone. */
const addressOf = (url: Redacted.Redacted) => {
  const { hostname, pathname, port, searchParams } = new URL(Redacted.value(url))
  const database = decodeURIComponent(pathname.slice(1))
  // The parameter names a folder of sockets, or another host.
  const isPlain = hostname !== "" && !searchParams.has("host")
  return {
    ...(isPlain && { host: decodeURIComponent(hostname).replace(/^\[(.*)\]$/, "$1") }),
    ...(isPlain && port !== "" && { port: Number(port) }),
    ...(database !== "" && { database })
  }
}

/** The pool, without applying migrations. */
export const poolLayer = ({
  connections,
  stream,
  url
}: DatabaseOptions): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient> =>
  Layer.orDie(
    PgClient.layerFrom(
      Effect.map(
        PgClient.make({
          url,
          ...addressOf(url),
          stream,
          maxConnections: connections,
          maxMessageSize: rowMaxBytes,
          connectTimeout: 3000,
          keepAlive: 5000,
          transformResultNames: String.snakeToCamel,
          transformQueryNames: String.camelToSnake,
          transformJson: false
        }),
        withSharedTransactions
      )
    )
  )
