/**
 * The embedded Postgres: a real server in the data directory, for a service without DATABASE_URL. It is
 * for development; a deployment brings its own Postgres.
 *
 * Several service processes can share one data directory. The first one starts the server, the others
 * connect to it, and the last one stops it. The server is a detached process, so it outlives a service
 * that is killed. The next service finds it again; without one, a watcher stops it after a minute (see
 * `watcher.ts`). When the server dies, its services restart it (see `supervisor.ts`).
 *
 * A shared file lock of each service says who uses the server, and so does a session of each, for services
 * of releases that count sessions. Processes create, start, stop and inspect the server under one exclusive
 * lock (see `lock.ts`).
 *
 * The server listens on 127.0.0.1 only, on a port that the first start chooses.
 */
import { spawn } from "node:child_process"
import { connect } from "node:net"
import type { Duplex } from "node:stream"
import { fileURLToPath } from "node:url"
import type * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, FileSystem, Path, Predicate, Redacted, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import { EmbeddedPostgresError, programEnvironment } from "./binaries.ts"
import { type Cluster, openCluster, superuser } from "./cluster.ts"
import { makeDataDirectory } from "./data-directory.ts"
import { lockFiles, temporary } from "./lock-files.ts"
import { joinUsers, openLock } from "./lock.ts"
import {
  clientPrefix,
  joinOrStart,
  reasonOf,
  type ServerOptions,
  stopUnlessUsed
} from "./server.ts"
import { supervise } from "./supervisor.ts"

/** The database that the connection URL names. */
const database = "svc"

/** The watcher stops a server without users after this long. */
const defaultIdleMillis = 60_000

/** Attempts to join a server that does not answer at once, one second apart. */
const joinAttempts = 30

export interface EmbeddedPostgresOptions {
  readonly dataDir: string
  readonly idleMillis?: number
  /** Whether the watcher removes the data directory after its last service was killed. Default: false. */
  readonly isTemporary?: boolean
}

/** The database of a data directory, as long as the scope is open. */
export interface EmbeddedDatabase {
  /** URL of the database `svc`, at the address of the server now. */
  readonly url: Redacted.Redacted
  /** Opens a connection to the server; after a restart, to its new address. */
  readonly connect: () => Duplex
  /** Whether the server is gone, and is being restarted. */
  readonly isRestarting: () => boolean
}

/**
 * Starts the Postgres of a data directory, or connects to the running one. When the scope closes, the last
 * process stops the server.
 */
export const embeddedPostgres = Effect.fn("embeddedPostgres")(
  function* (options: EmbeddedPostgresOptions) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    yield* makeDataDirectory(options.dataDir)
    const directory = yield* fs.realPath(options.dataDir)
    const withLock = yield* openLock(path.join(directory, lockFiles.start))
    const client = `${clientPrefix}${yield* (yield* SecureRandom.SecureRandom).uuidV4()}`
    const watch = (cluster: Cluster) => spawnWatcher(directory, cluster, options)

    const { joined, server } = yield* withLock(
      Effect.gen(function* () {
        const cluster = yield* openCluster(directory)
        const leave = yield* joinUsers(path.join(directory, lockFiles.users))
        yield* Effect.addFinalizer(() =>
          withLock(
            Effect.flatMap(leave, (isLast) =>
              isLast ? stopUnlessUsed(cluster, client) : Effect.void
            )
          ).pipe(Effect.ignore({ log: "Warn", message: "Failed to stop the embedded Postgres" }))
        )
        const server = { cluster, client, log: path.join(directory, "postgres.log") }
        const joined = yield* join(server)
        yield* fs.writeFileString(path.join(directory, lockFiles.watcher), "", { flag: "a" })
        watch(cluster)
        return { joined, server }
      })
    )
    const state = yield* supervise({
      joined,
      rejoin: (port) =>
        Effect.tap(withLock(joinOrStart({ ...server, port })), () =>
          Effect.sync(() => watch(server.cluster))
        )
    })
    const password = Redacted.value(server.cluster.password)
    const address = `${superuser}:${password}@127.0.0.1:${joined.port}`
    return {
      url: Redacted.make(`postgres://${address}/${database}?application_name=${client}`),
      connect: () => {
        const socket = connect({ host: "127.0.0.1", port: state.port, noDelay: true })
        // The session that uses it reports the error.
        return socket.on("error", () => undefined)
      },
      isRestarting: () => state.isRestarting
    } satisfies EmbeddedDatabase
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

/** Joins the server or starts it. The session stays open, so that other releases see this service. */
const join = (server: ServerOptions) =>
  joinOrStart(server).pipe(
    // Another program may take the port before the server does, or a stopping server may still run.
    Effect.retry({
      while: Predicate.isTagged("EmbeddedPostgresError"),
      schedule: Schedule.spaced("300 millis"),
      times: 2
    }),
    Effect.tap(({ session }) => ensureDatabase(session)),
    Effect.tapErrorTag("SqlError", (error) =>
      Effect.logWarning(`Waiting for the embedded Postgres: ${reasonOf(error)}`)
    ),
    Effect.retry({
      while: Predicate.isTagged("SqlError"),
      schedule: Schedule.spaced("1 second"),
      times: joinAttempts
    })
  )

const ensureDatabase = Effect.fnUntraced(function* (session: PgConnection.PgConnection) {
  const found = yield* session.query("select 1 from pg_database where datname = $1", [database])
  if (found.rowCount === 0) yield* session.query(`create database ${database}`)
})

/** Starts the watcher of the data directory; it ends at once if there is one. */
const spawnWatcher = (
  directory: string,
  { home, programs, user }: Cluster,
  { idleMillis = defaultIdleMillis, isTemporary = false }: EmbeddedPostgresOptions
): void => {
  const lifetime = isTemporary ? temporary : "lasting"
  const owner = user === undefined ? [] : [`${user.uid}`, `${user.gid}`]
  const program = fileURLToPath(new URL("watcher.ts", import.meta.url))
  spawn(
    process.execPath,
    [program, directory, home, programs, `${idleMillis}`, lifetime, ...owner],
    {
      cwd: directory,
      env: programEnvironment,
      detached: true,
      windowsHide: true,
      stdio: "ignore"
    }
  )
    .on("error", () => undefined)
    .unref()
}
