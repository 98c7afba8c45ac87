/**
 * The embedded Postgres: a real server in the data directory, for a service without DATABASE_URL.
 *
 * Several service processes can share one data directory. The first one starts the server, the others
 * connect to it, and the last one stops it. The server is a detached process, so it outlives a service
 * that is killed. The next service finds it again; without one, a watcher stops it after a minute (see
 * `watcher.ts`).
 *
 * Postgres' own `postmaster.pid` names the port, a session proves that the server runs, and a shared file
 * lock of each service says who uses it. Processes create, start, stop and inspect the server under one
 * exclusive lock (see `lock.ts`).
 *
 * The server listens on 127.0.0.1 only, on a port that the operating system chooses at each start.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import {
  type Duration,
  Effect,
  FileSystem,
  Option,
  Path,
  Predicate,
  Redacted,
  Schedule
} from "effect"
import { SecureRandom } from "effect/crypto"
import type { SqlError } from "effect/sql/SqlError"
import { freePort } from "../settings/free-port.ts"
import { EmbeddedPostgresError, programEnvironment } from "./binaries.ts"
import { type Cluster, openCluster, runProgram, superuser } from "./cluster.ts"
import { makeDataDirectory } from "./data-directory.ts"
import { lockFiles } from "./lock-files.ts"
import { joinUsers, openLock } from "./lock.ts"

/** The database that the connection URL names. */
const database = "svc"

/** The `application_name` of sessions. */
const applicationName = "player-backend"

/** The watcher stops a server without users after this long. */
const defaultIdleMillis = 60_000

/** Timeout from the start of the server to the first session. It includes crash recovery. */
const startTimeout = "1 minute"

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

/**
 * Starts the Postgres of a data directory, or connects to the running one. Returns the connection URL of
 * its database `svc`. When the scope closes, the last process stops the server.
 */
export const embeddedPostgres = Effect.fn("embeddedPostgres")(
  function* (options: { readonly dataDir: string; readonly idleMillis?: number }) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    yield* makeDataDirectory(options.dataDir)
    const directory = yield* fs.realPath(options.dataDir)
    const withLock = yield* openLock(path.join(directory, lockFiles.start))

    return yield* withLock(
      Effect.gen(function* () {
        const cluster = yield* openCluster(directory)
        const leave = yield* joinUsers(path.join(directory, lockFiles.users))
        yield* Effect.addFinalizer(() =>
          withLock(stopIfLast(cluster, leave)).pipe(
            Effect.ignore({ log: "Warn", message: "Failed to stop the embedded Postgres" })
          )
        )
        const log = path.join(directory, "postgres.log")
        const port = yield* Effect.scoped(
          Effect.gen(function* () {
            const joined = yield* joinOrStart(cluster, log)
            yield* ensureDatabase(joined.session)
            return joined.port
          })
        )
        yield* fs.writeFileString(path.join(directory, lockFiles.watcher), "", { flag: "a" })
        spawnWatcher(directory, cluster, options.idleMillis ?? defaultIdleMillis)
        const password = Redacted.value(cluster.password)
        const address = `${superuser}:${password}@127.0.0.1:${port}`
        return Redacted.make(
          `postgres://${address}/${database}?application_name=${applicationName}`
        )
      })
    )
  },
  (effect, { dataDir }) =>
    Effect.catchTags(effect, {
      PlatformError: (cause) =>
        new EmbeddedPostgresError({
          message:
            `Failed to use the data directory ${dataDir}: ${cause.message}. Run the service as the ` +
            "user that owns it, choose another with SVC_DATA_DIR, or set DATABASE_URL.",
          cause
        }),
      SqlError: (cause) =>
        new EmbeddedPostgresError({
          message: `Failed to set up the running Postgres in ${dataDir}: ${reasonOf(cause)}`,
          cause
        })
    }),
  Effect.provide(SecureRandom.layerWebCrypto)
)

/** Opens a session on the maintenance database. The scope closes it. */
const connect = (cluster: Cluster, port: number) =>
  PgConnection.make({
    host: "127.0.0.1",
    port,
    username: superuser,
    password: cluster.password,
    database: "postgres",
    applicationName
  })

/** The message of the server or the socket. */
const reasonOf = (error: SqlError) => String(error.reason.cause)

/** Whether the server refuses sessions for now: it starts, stops or has no free connection. */
const isUnavailable = (error: SqlError) => Predicate.isTagged(error.reason, "UnknownError")

/** Whether no server listens, or another program uses the port of a dead server. */
const isAbsent = (error: SqlError) =>
  Predicate.isTagged(error.reason, "ConnectionError") ||
  Predicate.isTagged(error.reason, "AuthenticationError")

const pollFor = (duration: Duration.Input) =>
  Schedule.spaced("20 millis").pipe(Schedule.upTo({ duration }))

/** Opens a session on the running server; none without a server. */
const attach = (cluster: Cluster, port: number, timeout: Duration.Input) =>
  connect(cluster, port).pipe(
    Effect.retry({ while: isUnavailable, schedule: pollFor(timeout) }),
    Effect.asSome,
    Effect.catchIf(isAbsent, () => Effect.succeedNone)
  )

/** Connects to the running server, or starts one. */
const joinOrStart = (cluster: Cluster, log: string) =>
  Effect.gen(function* () {
    const found = yield* readPostmaster(cluster)
    if (Option.isSome(found)) {
      const { port } = found.value
      const session = yield* attach(cluster, port, startTimeout)
      if (Option.isSome(session)) return { port, session: session.value }
    }
    return yield* start(cluster, log, found)
  }).pipe(
    // Another program may take the port before the server does, or a stopping server may still run.
    Effect.retry({
      while: Predicate.isTagged("EmbeddedPostgresError"),
      schedule: Schedule.spaced("300 millis"),
      times: 2
    })
  )

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

/** Starts the server and waits for a session. Fails when the server exits. */
const start = Effect.fnUntraced(function* (
  cluster: Cluster,
  log: string,
  stale: Option.Option<Postmaster>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const port = yield* Effect.mapError(
    freePort("127.0.0.1"),
    ({ cause, message }) => new EmbeddedPostgresError({ message, cause })
  )
  // After a crash, the process id in `postmaster.pid` may belong to another program of the same user, and
  // Postgres would refuse to start. No server listened on the port, so make Postgres ignore that id, as
  // it ignores the shell that launched it. Postgres still refuses while the shared memory named in the
  // file is in use, that is, while the old server runs.
  const ignored = Option.filter(stale, ({ isComplete }) => isComplete)
  const server = yield* spawnServer(path.join(cluster.programs, "postgres"), log, {
    cluster,
    port,
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
  const session = yield* connect(cluster, port).pipe(
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
  readonly environment: Record<string, string>
}

/** Spawns the server in a process session of its own, so that no signal to the service reaches it. */
const spawnServer = (program: string, log: string, { cluster, environment, port }: LaunchOptions) =>
  Effect.callback<ChildProcess, EmbeddedPostgresError>((resume) => {
    const onError = (cause: unknown) =>
      resume(
        new EmbeddedPostgresError({
          message: `Failed to start ${program}: ${String(cause)}. Fix this, or set DATABASE_URL.`,
          cause
        })
      )
    try {
      // Truncated at each start, which bounds its size. The user of Postgres may not be able to open it.
      const output = openSync(log, "w", 0o600)
      const options = Object.entries(settings(port)).flatMap(([key, value]) => [
        "-c",
        `${key}=${value}`
      ])
      const server = spawn(program, ["-D", cluster.data, ...options], {
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

const ensureDatabase = Effect.fnUntraced(function* (session: PgConnection.PgConnection) {
  const found = yield* session.query("select 1 from pg_database where datname = $1", [database])
  if (found.rowCount === 0) yield* session.query(`create database ${database}`)
})

/** Stops the server unless another service process uses it. */
const stopIfLast = Effect.fnUntraced(function* (
  cluster: Cluster,
  leave: Effect.Effect<boolean, EmbeddedPostgresError>
) {
  if (!(yield* leave)) return
  const found = yield* readPostmaster(cluster)
  if (Option.isNone(found)) return
  // After a crash, the process id in `postmaster.pid` may belong to another program.
  const session = yield* attach(cluster, found.value.port, "5 seconds")
  if (Option.isNone(session)) return
  yield* runProgram("pg_ctl", ["stop", "-D", cluster.data, "-m", "fast", "-w"], cluster)
}, Effect.scoped)

/** Starts the watcher of the data directory; it ends at once if there is one. */
const spawnWatcher = (directory: string, cluster: Cluster, idleMillis: number): void => {
  const { home, programs, user } = cluster
  const owner = user === undefined ? [] : [`${user.uid}`, `${user.gid}`]
  const program = fileURLToPath(new URL("watcher.ts", import.meta.url))
  spawn(process.execPath, [program, directory, home, programs, `${idleMillis}`, ...owner], {
    cwd: directory,
    env: programEnvironment,
    detached: true,
    windowsHide: true,
    stdio: "ignore"
  })
    .on("error", () => undefined)
    .unref()
}
