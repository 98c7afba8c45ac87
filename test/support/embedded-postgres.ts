/** Services on the embedded Postgres: a scope of this process, or a process of its own to kill. */
import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { Effect, Exit, FileSystem, Path, Redacted, Scope, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { SqlClient } from "effect/sql"
import { embeddedPostgres } from "#server/platform/postgres/embedded"

const root = new URL("../..", import.meta.url)

/** An empty data directory that the unprivileged user of Postgres can enter. */
export const makeDataDir = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const directory = yield* fs.makeTempDirectoryScoped({ prefix: "embedded-postgres-" })
  yield* fs.chmod(directory, 0o755)
  return directory
})

/** Starts a service in this process; returns its database URL and its graceful stop. */
export const startService = Effect.fnUntraced(function* (dataDir: string, idleMillis = 60_000) {
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
  const database = yield* Scope.provide(embeddedPostgres({ dataDir, idleMillis }), scope)
  return { ...database, stop: Scope.close(scope, Exit.void) }
})

/** Starts a process that prints a line and then runs until it is killed. */
export const spawnNode = Effect.fnUntraced(function* (
  program: string,
  ...args: ReadonlyArray<string>
) {
  const handle = yield* ChildProcess.make(
    process.execPath,
    ["--input-type=module", "--eval", program, ...args],
    { cwd: root.pathname, stdin: "ignore", stderr: "inherit" }
  )
  const line = yield* handle.stdout.pipe(Stream.decodeText(), Stream.splitLines, Stream.runHead)
  return {
    line: yield* Effect.fromOption(line),
    kill: handle.kill({ killSignal: "SIGKILL" })
  }
})

const serviceProgram = `
  import { NodeRuntime, NodeServices } from "@effect/platform-node"
  import { Console, Effect, Redacted } from "effect"
  import { embeddedPostgres } from "#server/platform/postgres/embedded"
  const [, dataDir, idleMillis, lifetime] = process.argv
  const isTemporary = lifetime === "temporary"
  embeddedPostgres({ dataDir, idleMillis: Number(idleMillis), isTemporary }).pipe(
    Effect.flatMap(({ url }) => Console.log(Redacted.value(url))),
    Effect.andThen(Effect.never),
    Effect.scoped,
    Effect.provide(NodeServices.layer),
    NodeRuntime.runMain
  )`

/** Starts a service in a process of its own, which a test can kill. */
export const spawnService = (dataDir: string, idleMillis = 60_000, lifetime = "lasting") =>
  Effect.map(spawnNode(serviceProgram, dataDir, `${idleMillis}`, lifetime), ({ kill, line }) => ({
    url: Redacted.make(line),
    kill
  }))

export const portOf = (url: Redacted.Redacted) => new URL(Redacted.value(url)).port

/** Runs one statement on the server at `url`. */
export const query = (url: Redacted.Redacted, statement: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return yield* sql.unsafe(statement)
  }).pipe(Effect.provide(PgClient.layer({ url })))

export const assertRuns = (url: Redacted.Redacted) =>
  Effect.map(query(url, "select 1 as one"), (rows) => assert.deepStrictEqual(rows, [{ one: 1 }]))

export const assertStopped = (url: Redacted.Redacted) =>
  Effect.map(Effect.flip(query(url, "select 1")), (error) =>
    assert.strictEqual(error.reason._tag, "ConnectionError")
  )

export const postmasterPid = Effect.fnUntraced(function* (dataDir: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(dataDir, "postgres", "data", "postmaster.pid")
  const [pid = "", ...rest] = (yield* fs.readFileString(file)).split("\n")
  return { file, pid: Number(pid), rest }
})
