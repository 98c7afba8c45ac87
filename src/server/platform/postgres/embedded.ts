/**
 * The embedded Postgres: a real server in the data directory, for a service without DATABASE_URL.
 *
 * Several service processes may share one data directory. The first starts the server, the others
 * find it running, the last to leave stops it. The server is a detached process: it outlives a
 * service that is killed, and the next one finds it again. What decides is never remembered but
 * asked: Postgres' own `postmaster.pid` names the port, a session proves that it answers, and
 * `pg_stat_activity` lists the other processes. Creating, starting, stopping and these questions
 * happen under one lock (see `lock.ts`).
 *
 * The server listens on 127.0.0.1 only, on a port that the system chooses at each start.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { createServer } from "node:net"
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
import { EmbeddedPostgresError, programEnvironment } from "./binaries.ts"
import { type Cluster, openCluster, runProgram, superuser } from "./cluster.ts"
import { openLock } from "./lock.ts"

/** The database that the connection URL names. */
const database = "svc"

/** How every session of a service process is called, followed by an id of the process. */
const clientPrefix = "player-backend-"

/** How long a server may take from its start to its first session, crash recovery included. */
const startTimeout = "1 minute"

const settings = (port: number): Record<string, string | number> => ({
  listen_addresses: "127.0.0.1",
  port,
  unix_socket_directories: "",
  max_connections: 200,
  shared_buffers: "128MB",
  // Nothing acknowledged may be lost.
  fsync: "on",
  synchronous_commit: "on",
  timezone: "UTC",
  log_timezone: "UTC",
  // Errors of statements go to the client. In the log they would be players' data without bound.
  log_min_messages: "log",
  log_checkpoints: "off"
})

/**
 * Starts, or joins, the Postgres of a data directory and returns the connection URL of its
 * database `svc`. When the scope closes this process leaves; the last one out stops the server.
 *
 * The URL carries an `application_name`, by which processes know of each other: keep it.
 */
export const embeddedPostgres = Effect.fn("embeddedPostgres")(
  function* (options: { readonly dataDir: string }) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const random = yield* SecureRandom.SecureRandom
    yield* fs.makeDirectory(options.dataDir, { recursive: true })
    const directory = yield* fs.realPath(options.dataDir)
    const withLock = yield* openLock(path.join(directory, "postgres.lock"))
    const client = `${clientPrefix}${yield* random.uuidV4()}`

    return yield* withLock(
      Effect.gen(function* () {
        const cluster = yield* openCluster(directory)
        yield* Effect.addFinalizer(() =>
          withLock(leave(cluster, client)).pipe(
            Effect.ignore({ log: "Warn", message: "the embedded Postgres was left running" })
          )
        )
        const log = path.join(directory, "postgres.log")
        // This session stays open until the scope closes: it is the sign that we are here.
        const { port, session } = yield* enter(cluster, client, log)
        yield* ensureDatabase(session)
        const password = Redacted.value(cluster.password)
        const address = `${superuser}:${password}@127.0.0.1:${port}`
        return Redacted.make(`postgres://${address}/${database}?application_name=${client}`)
      })
    )
  },
  (effect, { dataDir }) =>
    Effect.catchTags(effect, {
      PlatformError: (cause) =>
        new EmbeddedPostgresError({
          message:
            `Cannot use the data directory ${dataDir}: ${cause.message}. Run the service as the ` +
            "user that owns it, choose another with SVC_DATA_DIR, or set DATABASE_URL.",
          cause
        }),
      SqlError: (cause) =>
        new EmbeddedPostgresError({
          message: `The Postgres in ${dataDir} runs but refuses to work: ${said(cause)}`,
          cause
        })
    }),
  Effect.provide(SecureRandom.layerWebCrypto)
)

/** One session on the maintenance database, as long as the scope. */
const connect = (cluster: Cluster, port: number, applicationName: string) =>
  PgConnection.make({
    host: "127.0.0.1",
    port,
    username: superuser,
    password: cluster.password,
    database: "postgres",
    applicationName
  })

/** What the server or the socket said. */
const said = (error: SqlError) => String(error.reason.cause)

/** A server answered that it cannot take a session now: it starts, stops or is full. */
const isOccupied = (error: SqlError) => Predicate.isTagged(error.reason, "UnknownError")

/** Nothing answers, or a stranger that has been given the port of a dead server. */
const isAbsent = (error: SqlError) =>
  Predicate.isTagged(error.reason, "ConnectionError") ||
  Predicate.isTagged(error.reason, "AuthenticationError")

const pollFor = (duration: Duration.Input) =>
  Schedule.spaced("20 millis").pipe(Schedule.upTo({ duration }))

/** A session on the running server, none when there is no server. */
const attach = (cluster: Cluster, port: number, client: string, patience: Duration.Input) =>
  connect(cluster, port, client).pipe(
    Effect.retry({ while: isOccupied, schedule: pollFor(patience) }),
    Effect.asSome,
    Effect.catchIf(isAbsent, () => Effect.succeedNone)
  )

/** Joins the running server, or starts one. */
const enter = (cluster: Cluster, client: string, log: string) =>
  Effect.gen(function* () {
    const found = yield* readPostmaster(cluster)
    if (Option.isSome(found)) {
      const { port } = found.value
      const session = yield* attach(cluster, port, client, startTimeout)
      if (Option.isSome(session)) return { port, session: session.value }
    }
    return yield* start(cluster, client, log, found)
  }).pipe(
    // The port may be taken between its choice and its use; a dying server may still be there.
    Effect.retry({
      while: Predicate.isTagged("EmbeddedPostgresError"),
      schedule: Schedule.spaced("300 millis"),
      times: 2
    })
  )

interface Postmaster {
  readonly pid: string
  readonly port: number
  /** Whether the file names the server's shared memory, which is written last but one. */
  readonly complete: boolean
}

/** What the server wrote about itself into its data directory. It stays there after a crash. */
const readPostmaster = Effect.fnUntraced(function* (cluster: Cluster) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = yield* Effect.option(fs.readFileString(path.join(cluster.data, "postmaster.pid")))
  return Option.flatMap(file, (text): Option.Option<Postmaster> => {
    const [pid, , , port, , , memory] = text.split("\n")
    if (!pid || !port) return Option.none()
    return Option.some({ pid, port: Number(port), complete: !!memory })
  })
})

/** Starts the server and waits for a session, or for its end. */
const start = Effect.fnUntraced(function* (
  cluster: Cluster,
  client: string,
  log: string,
  stale: Option.Option<Postmaster>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const port = yield* freePort
  // After a crash the process id in `postmaster.pid` may belong to another program of the same
  // user, and Postgres would refuse to start. Nobody answered on the port, so let Postgres pass
  // over that id, as it does for the shell that launched it. It still refuses when the shared
  // memory named in the file is in use, that is when the old server lives after all.
  const overlooked = Option.filter(stale, ({ complete }) => complete)
  const server = yield* spawnServer(path.join(cluster.programs, "postgres"), log, {
    cluster,
    port,
    environment: Option.match(overlooked, {
      onNone: () => programEnvironment,
      onSome: ({ pid }) => ({ ...programEnvironment, PG_GRANDPARENT_PID: pid })
    })
  })
  const failure = Effect.fnUntraced(function* (what: string) {
    const written = yield* fs.readFileString(log)
    const end = written.trimEnd().split("\n").slice(-12).join("\n")
    return yield* new EmbeddedPostgresError({
      message: `Postgres did not come up: ${what}. The last lines of ${log}:\n${end}`
    })
  })
  const session = yield* connect(cluster, port, client).pipe(
    Effect.retry({ schedule: pollFor(startTimeout) }),
    Effect.catch((error) => failure(`no session within ${startTimeout} (${said(error)})`)),
    Effect.raceFirst(Effect.flatMap(ended(server), failure)),
    Effect.onInterrupt(() => Effect.sync(() => server.kill("SIGINT")))
  )
  return { port, session }
})

interface Launch {
  readonly cluster: Cluster
  readonly port: number
  readonly environment: Record<string, string>
}

/** Spawns the server in a session of its own, so that no signal to the service reaches it. */
const spawnServer = (program: string, log: string, { cluster, environment, port }: Launch) =>
  Effect.callback<ChildProcess, EmbeddedPostgresError>((resume) => {
    const failed = (cause: unknown) =>
      resume(
        new EmbeddedPostgresError({
          message: `Cannot start ${program}: ${String(cause)}. Fix this, or set DATABASE_URL.`,
          cause
        })
      )
    try {
      // Emptied at each start, which bounds it. Opened here, as Postgres' user may not reach it.
      const output = openSync(log, "w", 0o600)
      const given = Object.entries(settings(port)).flatMap(([key, value]) => [
        "-c",
        `${key}=${value}`
      ])
      const server = spawn(program, ["-D", cluster.data, ...given], {
        cwd: cluster.home,
        env: environment,
        detached: true,
        windowsHide: true,
        stdio: ["ignore", output, output],
        ...cluster.user
      })
      closeSync(output)
      server.unref()
      server.once("error", failed)
      server.once("spawn", () => resume(Effect.succeed(server)))
    } catch (cause) {
      failed(cause)
    }
  })

/** Waits for the end of a process and says how it ended. */
const ended = (server: ChildProcess) =>
  Effect.callback<string>((resume) => {
    const finish = () =>
      resume(Effect.succeed(`it ended with ${server.signalCode ?? `code ${server.exitCode}`}`))
    if (server.exitCode !== null || server.signalCode !== null) return finish()
    server.once("exit", finish)
    return Effect.sync(() => server.off("exit", finish))
  })

/** A TCP port of 127.0.0.1 that was free a moment ago. */
const freePort = Effect.callback<number, EmbeddedPostgresError>((resume) => {
  const server = createServer()
  server.once("error", (cause) =>
    resume(
      new EmbeddedPostgresError({ message: `No free port on 127.0.0.1: ${cause.message}`, cause })
    )
  )
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

const ensureDatabase = Effect.fnUntraced(function* (session: PgConnection.PgConnection) {
  const found = yield* session.query("select 1 from pg_database where datname = $1", [database])
  if (found.rowCount === 0) yield* session.query(`create database ${database}`)
})

/** Stops the server unless another service process has a session there. */
const leave = Effect.fnUntraced(function* (cluster: Cluster, client: string) {
  const found = yield* readPostmaster(cluster)
  if (Option.isNone(found)) return
  const session = yield* attach(cluster, found.value.port, "player-backend", "5 seconds")
  if (Option.isNone(session)) return
  const { query } = session.value
  // Our closed sessions may linger; the process that leaves next must not take them for us.
  yield* query(
    "select pg_terminate_backend(pid, 1000) from pg_stat_activity where application_name = $1",
    [client]
  )
  const others = yield* query(
    `select 1 from pg_stat_activity
      where starts_with(application_name, $1) and application_name <> $2 limit 1`,
    [clientPrefix, client]
  )
  if (others.rowCount > 0) return
  yield* runProgram("pg_ctl", ["stop", "-D", cluster.data, "-m", "fast", "-w"], cluster)
}, Effect.scoped)
