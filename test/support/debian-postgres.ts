/**
 * A Postgres server with client programs from the distribution, because the embedded one lacks
 * `pg_dump`. None on machines without such packages.
 */
import { execFile, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { chmod, chown, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect, Schedule } from "effect"
import { freePort } from "#testing/runners"

const execute = promisify(execFile)

const printed = (program: string, ...args: ReadonlyArray<string>): string | undefined => {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
  } catch {
    return undefined
  }
}

/** Debian installs the programs of each version in a separate directory. */
const folders = [
  printed("pg_config", "--bindir")?.trim(),
  ...[18, 17, 16, 15, 14].map((version) => `/usr/lib/postgresql/${version}/bin`)
]

/** Directory with a server and `pg_dump` of one version. */
export const programs = folders.find(
  (folder) =>
    folder !== undefined &&
    ["initdb", "postgres", "pg_dump", "pg_restore", "psql"].every(
      (program) => printed(join(folder, program), "--version") !== undefined
    )
)

/** Ends the name of a test that is skipped without the programs. */
export const needsPrograms =
  programs === undefined ? " (skipped: needs pg_dump and a server, apt-get install postgresql)" : ""

/** Postgres does not run as root. */
const user = () => {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) =>
    Number(printed("id", flag, "postgres") ?? printed("id", flag, "nobody"))
  return { uid: id("-u"), gid: id("-g") }
}

const path = (folder: string) => ({ PATH: `${folder}:/usr/bin:/bin`, LC_ALL: "C" })

/** Runs a client program and waits for its exit. */
export const runClient = (folder: string, program: string, ...args: ReadonlyArray<string>) =>
  Effect.promise(() => execute(join(folder, program), args, { env: path(folder) }))

/** Starts a server in a temporary directory for the scope; returns its URL without a database. */
export const startServer = (folder: string) =>
  Effect.gen(function* () {
    const port = yield* freePort
    const as = user()
    const home = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "backup-"))),
      (made) => Effect.promise(() => rm(made, { recursive: true, force: true }))
    )
    yield* Effect.promise(async () => {
      await chmod(home, 0o755)
      if (as !== undefined) await chown(home, as.uid, as.gid)
      const data = ["--pgdata", join(home, "data"), "--username", "svc", "--auth", "trust"]
      await execute(join(folder, "initdb"), data, { cwd: home, env: path(folder), ...as })
    })
    const settings = ["-p", `${port}`, "-c", "listen_addresses=127.0.0.1", "-k", home]
    yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(join(folder, "postgres"), ["-D", join(home, "data"), ...settings], {
          cwd: home,
          env: path(folder),
          stdio: "ignore",
          ...as
        })
      ),
      (server) =>
        Effect.promise(async () => {
          const ended = once(server, "exit")
          if (server.kill("SIGINT")) await ended
        })
    )
    const url = `postgres://svc@127.0.0.1:${port}`
    yield* Effect.tryPromise(() =>
      execute(join(folder, "psql"), [`${url}/postgres`, "-c", "select 1"], { env: path(folder) })
    ).pipe(Effect.retry({ times: 200, schedule: Schedule.spaced(50) }), Effect.orDie)
    return url
  })
