/**
 * The server process of the embedded Postgres: finds it, starts it, and stops it when nobody uses it. The
 * caller holds the start lock.
 *
 * Postgres' own `postmaster.pid` names the port, and a session proves that the server runs.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, openSync, statSync } from "node:fs"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { type Duration, Effect, FileSystem, Option, Path, Predicate, Schedule } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { freePort, isFreePort } from "../settings/free-port.ts"
import { EmbeddedPostgresError, programEnvironment } from "./binaries.ts"
import { type Cluster, runProgram, superuser } from "./cluster.ts"

/**
 * Prefix of the `application_name` of a service; an id of the process follows. Releases before the file of
 * users count their users by it, so each service keeps a session of such a name.
 */
export const clientPrefix = "player-backend-"

/** The `application_name` of sessions that do not use the database. */
const visitor = "player-backend"

/** Timeout from the start of the server to the first session. It includes crash recovery. */
const startTimeout = "1 minute"

/** A restarted server appends to its log up to this size, so that the log has the reason of the crash. */
const logMaxBytes = 1024 * 1024

const settings = (port: number): Record<string, string | number> => ({
  listen_addresses: "127.0.0.1",
  port,
  unix_socket_directories: "",
  max_connections: 200,
  shared_buffers: "128MB",
  // An acknowledged write must survive a crash.
  fsync: "on",
  synchronous_commit: "on",
  timezone: "UTC",
  log_timezone: "UTC",
  // The client logs errors of statements. Here they would add unbounded text with players' data.
  log_min_messages: "log",
  log_checkpoints: "off"
})

/** A server to find or start. */
export interface ServerOptions {
  readonly cluster: Cluster
  /** The file of its output. */
  readonly log: string
  /** The `application_name` of the session. */
  readonly client: string
  /** The port of the server before it died, to which other services still connect. */
  readonly port?: number
}

/** Opens a session on the maintenance database. The scope closes it. */
const connect = (cluster: Cluster, port: number, applicationName: string) =>
  PgConnection.make({
    host: "127.0.0.1",
    port,
    username: superuser,
    password: cluster.password,
    database: "postgres",
    applicationName
  })

/** The message of the server or the socket. */
export const reasonOf = (error: SqlError) => String(error.reason.cause)

/** Whether the server refuses sessions for now, or is too busy: it starts, stops or has no free connection. */
const isUnavailable = ({ reason }: SqlError) =>
  Predicate.isTagged(reason, "UnknownError") || /timed out/.test(String(reason.cause))

/** Whether no server listens, or another program uses the port of a dead server. */
const isAbsent = (error: SqlError) =>
  !isUnavailable(error) &&
  (Predicate.isTagged(error.reason, "ConnectionError") ||
    Predicate.isTagged(error.reason, "AuthenticationError"))

const pollFor = (duration: Duration.Input) =>
  Schedule.spaced("20 millis").pipe(Schedule.upTo({ duration }))

/** Opens a session on the running server; none without a server. */
const attach = (cluster: Cluster, port: number, client: string, timeout: Duration.Input) =>
  connect(cluster, port, client).pipe(
    Effect.retry({ while: isUnavailable, schedule: pollFor(timeout) }),
    Effect.asSome,
    Effect.catchIf(isAbsent, () => Effect.succeedNone)
  )

/** Connects to the running server, or starts one. */
export const joinOrStart = Effect.fnUntraced(function* (options: ServerOptions) {
  const { client, cluster } = options
  const found = yield* readPostmaster(cluster)
  if (Option.isSome(found)) {
    const { port } = found.value
    const session = yield* attach(cluster, port, client, startTimeout)
    if (Option.isSome(session)) return { port, session: session.value }
  }
  return yield* start(options, found)
})

interface Postmaster {
  readonly pid: string
  readonly port: number
  /** Whether the file names the server's shared memory, its last entry but one. */
  readonly isComplete: boolean
}

/** Reads `postmaster.pid` of the data directory. The file stays there after a crash. */
const readPostmaster = Effect.fnUntraced(function* (cluster: Cluster) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = yield* Effect.option(fs.readFileString(path.join(cluster.data, "postmaster.pid")))
  return Option.flatMap(file, (text): Option.Option<Postmaster> => {
    const [pid, , , port, , , memory] = text.split("\n")
    if (!pid || !port) return Option.none()
    return Option.some({ pid, port: Number(port), isComplete: !!memory })
  })
})

/** The port of the server before, unless another program has taken it. */
const choosePort = (former: number | undefined) =>
  Effect.gen(function* () {
    if (former !== undefined && (yield* isFreePort("127.0.0.1", former))) return former
    return yield* freePort("127.0.0.1")
  }).pipe(Effect.mapError(({ cause, message }) => new EmbeddedPostgresError({ message, cause })))

/** Starts the server and waits for a session. Fails when the server exits. */
const start = Effect.fnUntraced(function* (
  { client, cluster, log, port: former }: ServerOptions,
  stale: Option.Option<Postmaster>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const port = yield* choosePort(former ?? Option.getOrUndefined(stale)?.port)
  // After a crash, the process id in `postmaster.pid` may belong to another program of the same user, and
  // Postgres would refuse to start. No server listened on the port, so make Postgres ignore that id, as
  // it ignores the shell that launched it. Postgres still refuses while the shared memory named in the
  // file is in use, that is, while the old server runs.
  const ignored = Option.filter(stale, ({ isComplete }) => isComplete)
  const server = yield* spawnServer(path.join(cluster.programs, "postgres"), log, {
    cluster,
    port,
    isRestart: former !== undefined,
    environment: Option.match(ignored, {
      onNone: () => programEnvironment,
      onSome: ({ pid }) => ({ ...programEnvironment, PG_GRANDPARENT_PID: pid })
    })
  })
  const failure = Effect.fnUntraced(function* (reason: string) {
    const text = yield* fs.readFileString(log)
    const lastLines = text.trimEnd().split("\n").slice(-12).join("\n")
    return yield* new EmbeddedPostgresError({
      message: `Failed to start Postgres: ${reason}. The last lines of ${log}:\n${lastLines}`
    })
  })
  const session = yield* connect(cluster, port, client).pipe(
    Effect.retry({ schedule: pollFor(startTimeout) }),
    Effect.catch((error) => failure(`no session within ${startTimeout} (${reasonOf(error)})`)),
    Effect.raceFirst(Effect.flatMap(exitOf(server), failure)),
    Effect.onInterrupt(() => Effect.sync(() => server.kill("SIGINT")))
  )
  return { port, session }
})

interface LaunchOptions {
  readonly cluster: Cluster
  readonly port: number
  readonly isRestart: boolean
  readonly environment: Record<string, string>
}

/** Opens the log. Its size is bounded: a start truncates it, and a restart when it has grown. */
const openLog = (log: string, isRestart: boolean): number => {
  const size = isRestart ? statSync(log, { throwIfNoEntry: false })?.size : undefined
  // The user of Postgres may not be able to open it.
  return openSync(log, size !== undefined && size < logMaxBytes ? "a" : "w", 0o600)
}

/** Spawns the server in a process session of its own, so that no signal to the service reaches it. */
const spawnServer = (program: string, log: string, options: LaunchOptions) =>
  Effect.callback<ChildProcess, EmbeddedPostgresError>((resume) => {
    const { cluster, environment, isRestart, port } = options
    const onError = (cause: unknown) =>
      resume(
        new EmbeddedPostgresError({
          message: `Failed to start ${program}: ${String(cause)}. Fix this, or set DATABASE_URL.`,
          cause
        })
      )
    try {
      const output = openLog(log, isRestart)
      const parameters = Object.entries(settings(port)).flatMap(([key, value]) => [
        "-c",
        `${key}=${value}`
      ])
      const server = spawn(program, ["-D", cluster.data, ...parameters], {
        cwd: cluster.home,
        env: environment,
        detached: true,
        windowsHide: true,
        stdio: ["ignore", output, output],
        ...cluster.user
      })
      closeSync(output)
      server.unref()
      server.on("error", onError)
      server.once("spawn", () => resume(Effect.succeed(server)))
    } catch (cause) {
      onError(cause)
    }
  })

/** Waits for the exit of a process; describes its signal or code. */
const exitOf = (server: ChildProcess) =>
  Effect.callback<string>((resume) => {
    const onExit = () =>
      resume(Effect.succeed(`it exited with ${server.signalCode ?? `code ${server.exitCode}`}`))
    if (server.exitCode !== null || server.signalCode !== null) return onExit()
    server.once("exit", onExit)
    return Effect.sync(() => server.off("exit", onExit))
  })

/** Whether a service has a session, which counts as a user for releases without the file of users. */
const hasClients = Effect.fnUntraced(function* (
  session: PgConnection.PgConnection,
  own: string | undefined
) {
  if (own !== undefined) {
    // Sessions that this process has closed may linger. They would count as another service.
    yield* session.query(
      "select pg_terminate_backend(pid, 1000) from pg_stat_activity where application_name = $1",
      [own]
    )
  }
  const others = yield* session.query(
    `select 1 from pg_stat_activity
     where starts_with(application_name, $1) and application_name <> $2 limit 1`,
    [clientPrefix, own ?? ""]
  )
  return others.rowCount > 0
})

/**
 * Stops the server unless another service has a session there. The caller has found that no service holds
 * the file of users. Returns whether a service does use it.
 */
export const stopUnlessUsed = Effect.fnUntraced(function* (cluster: Cluster, own?: string) {
  const found = yield* readPostmaster(cluster)
  if (Option.isNone(found)) return false
  // After a crash, the process id in `postmaster.pid` may belong to another program.
  const session = yield* attach(cluster, found.value.port, visitor, "5 seconds")
  if (Option.isNone(session)) return false
  if (yield* hasClients(session.value, own)) return true
  yield* runProgram("pg_ctl", ["stop", "-D", cluster.data, "-m", "fast", "-w"], cluster)
  return false
}, Effect.scoped)
