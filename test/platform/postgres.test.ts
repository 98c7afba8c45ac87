/**
 * The embedded Postgres: one server per data directory, which outlives services that are killed. A
 * service to kill is a process of its own; a service that stops gracefully is a scope.
 */
import { DatabaseSync } from "node:sqlite"
import { NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, FileSystem, Layer, Path, Redacted, Schedule } from "effect"
import { lockFiles } from "#server/platform/postgres/lock-files"
import {
  assertRuns,
  assertStopped,
  makeDataDir,
  portOf,
  postmasterPid,
  query,
  spawnNode,
  spawnService,
  startService
} from "../support/embedded-postgres.ts"

const isRoot = process.getuid?.() === 0

/** A data directory with a stopped server, for tests that do not need to create one. */
class DataDir extends Context.Service<DataDir, string>()("test/platform/postgres.test/DataDir") {
  static readonly layer = Layer.effect(
    DataDir,
    Effect.tap(makeDataDir, (dataDir) => Effect.scoped(startService(dataDir)))
  )
}

const services = Layer.provideMerge(DataDir.layer, NodeServices.layer)

layer(services, { excludeTestServices: true })("embedded Postgres", (it) => {
  it.effect(
    "keeps data, settings and password of embedded Postgres from one start to the next",
    () =>
      Effect.gen(function* () {
        const dataDir = yield* DataDir
        const first = yield* startService(dataDir)
        yield* query(first.url, "create table note as select 'kept' as text")
        yield* first.stop
        yield* assertStopped(first.url)

        const second = yield* startService(dataDir)
        assert.deepStrictEqual(yield* query(second.url, "select text from note"), [
          { text: "kept" }
        ])
        const [settings] = yield* query(
          second.url,
          `select current_setting('fsync') as fsync, current_setting('max_connections') as connections,
          current_setting('shared_buffers') as buffers, current_setting('timezone') as timezone,
          pg_encoding_to_char(encoding) as encoding, datlocprovider::text as provider, datname::text
          from pg_database where datname = current_database()`
        )
        assert.deepStrictEqual(settings, {
          fsync: "on",
          connections: "200",
          buffers: "128MB",
          timezone: "UTC",
          encoding: "UTF8",
          provider: "b",
          datname: "svc"
        })
        const guess = new URL(Redacted.value(second.url))
        guess.password = "guess"
        const error = yield* Effect.flip(query(Redacted.make(guess.href), "select 1"))
        assert.strictEqual(error.reason._tag, "AuthenticationError")
      })
  )

  it.effect("stops Postgres with the last service that stops, and not before", () =>
    Effect.gen(function* () {
      const dataDir = yield* DataDir
      const [first, second] = yield* Effect.all([startService(dataDir), startService(dataDir)], {
        concurrency: "unbounded"
      })
      assert.strictEqual(portOf(first.url), portOf(second.url))
      yield* first.stop
      yield* assertRuns(second.url)
      // A connection that a stopping service leaves open does not count as another service.
      yield* Layer.build(PgClient.layer({ url: second.url, minConnections: 1 }))
      yield* second.stop
      yield* assertStopped(second.url)

      const all = yield* Effect.all([
        startService(dataDir),
        startService(dataDir),
        startService(dataDir)
      ])
      yield* Effect.forEach(all, ({ stop }) => stop, { concurrency: "unbounded" })
      yield* Effect.forEach(all, ({ url }) => assertStopped(url))
    })
  )

  it.effect(
    "shares Postgres between processes that start together, and survives their kill",
    () =>
      Effect.gen(function* () {
        const dataDir = yield* makeDataDir
        const [first, second] = yield* Effect.all([spawnService(dataDir), spawnService(dataDir)], {
          concurrency: "unbounded"
        })
        assert.strictEqual(portOf(first.url), portOf(second.url))
        yield* first.kill
        yield* assertRuns(second.url)
        yield* second.kill
        yield* assertRuns(second.url)

        const next = yield* startService(dataDir)
        assert.strictEqual(portOf(next.url), portOf(second.url))
        yield* next.stop
        yield* assertStopped(next.url)
      }),
    { tags: "long" }
  )

  it.effect(
    "stops Postgres and its watcher once every service is killed, and not before",
    () =>
      Effect.gen(function* () {
        const path = yield* Path.Path
        const dataDir = yield* makeDataDir
        const isHeld = (file: string) =>
          Effect.sync(() => {
            const lock = new DatabaseSync(path.join(dataDir, file), { timeout: 0 })
            try {
              lock.exec("begin exclusive")
              return false
            } catch {
              return true
            } finally {
              lock.close()
            }
          })
        const until = (file: string, held: boolean) =>
          isHeld(file).pipe(
            Effect.filterOrFail((found) => found === held),
            Effect.retry({ times: 1200, schedule: Schedule.spaced("50 millis") })
          )
        const first = yield* spawnService(dataDir, 600)
        const second = yield* spawnService(dataDir, 600)
        yield* until(lockFiles.watcher, true)
        yield* first.kill
        assert.isTrue(yield* isHeld(lockFiles.users), "the second service uses it")
        yield* assertRuns(second.url)
        yield* second.kill
        yield* until(lockFiles.users, false)
        yield* until(lockFiles.watcher, false)
        yield* assertStopped(second.url)

        // The watcher of a start ends with a graceful stop, too, and the next start has one again.
        const third = yield* startService(dataDir, 600)
        yield* until(lockFiles.watcher, true)
        yield* third.stop
        yield* assertStopped(third.url)
        yield* until(lockFiles.watcher, false)
      }),
    { tags: "long" }
  )

  it.effect(
    "removes a temporary data directory once its service was killed",
    () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const dataDir = yield* fs.makeTempDirectory({ prefix: "embedded-postgres-" })
        yield* fs.chmod(dataDir, 0o755)
        const { kill, url } = yield* spawnService(dataDir, 600, "temporary")
        yield* kill
        yield* fs.exists(dataDir).pipe(
          Effect.filterOrFail((isThere) => !isThere),
          Effect.retry({ times: 1200, schedule: Schedule.spaced("50 millis") })
        )
        yield* assertStopped(url)
      }),
    { tags: "long" }
  )

  it.effect(
    "starts after a crash, even when another program has the server's old pid",
    () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const dataDir = yield* DataDir
        const crashed = yield* spawnService(dataDir)
        yield* query(crashed.url, "create table entry as select 'kept' as text")
        yield* crashed.kill
        const { file, pid, rest } = yield* postmasterPid(dataDir)
        process.kill(pid, "SIGKILL")
        yield* fs.writeFileString(file, [process.ppid, ...rest].join("\n"))

        const next = yield* startService(dataDir)
        assert.deepStrictEqual(yield* query(next.url, "select text from entry"), [{ text: "kept" }])
      }),
    { tags: "long" }
  )

  it.effect(
    "waits for the lock of embedded Postgres until its holder dies, and removes an incomplete cluster",
    () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const dataDir = yield* makeDataDir
        const incomplete = path.join(dataDir, "postgres.new", "data")
        yield* fs.makeDirectory(incomplete, { recursive: true })
        yield* fs.writeFileString(path.join(incomplete, "PG_VERSION"), "18\n")
        const lock = path.join(dataDir, "postgres.lock")
        const holder = yield* spawnNode(
          `import { DatabaseSync } from "node:sqlite"
        new DatabaseSync(process.argv[1]).exec("begin exclusive")
        setInterval(() => {}, 1000)
        console.log("held")`,
          lock
        )
        assert.throws(() => new DatabaseSync(lock).exec("begin exclusive"), /locked/)
        const starting = yield* Effect.forkScoped(startService(dataDir))
        yield* holder.kill
        const { url } = yield* Fiber.join(starting)
        yield* assertRuns(url)
        assert.isFalse(yield* fs.exists(path.join(dataDir, "postgres.new")))
      }),
    { tags: "long" }
  )

  it.effect("names the settings to change when the data directory is unusable", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const file = path.join(yield* makeDataDir, "file")
      yield* fs.writeFileString(file, "")
      const error = yield* Effect.flip(startService(path.join(file, "data")))
      assert.match(error.message, /SVC_DATA_DIR.*DATABASE_URL/)
    })
  )

  it.effect("fails with the end of the log when Postgres does not start", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const dataDir = yield* makeDataDir
      yield* fs.makeDirectory(path.join(dataDir, "postgres", "data"), { recursive: true })
      yield* fs.writeFileString(path.join(dataDir, "postgres", "password"), "secret")
      const error = yield* Effect.flip(startService(dataDir))
      const log = yield* fs.readFileString(path.join(dataDir, "postgres.log"))
      assert.isNotEmpty(log)
      assert.include(error.message, "Failed to start Postgres: it exited with code")
      assert.include(error.message, log.trimEnd())
    })
  )

  it.effect.skipIf(!isRoot)(
    "keeps data where Postgres can enter when root starts it (skipped unless root)",
    () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const closed = yield* makeDataDir
        yield* fs.chmod(closed, 0o700)
        const dataDir = path.join(closed, "data")
        const link = path.join(dataDir, "postgres")
        const first = yield* startService(dataDir)
        const home = yield* fs.readLink(link)
        yield* Effect.addFinalizer(() => Effect.orDie(fs.remove(home, { recursive: true })))
        yield* query(first.url, "create table note as select 'kept' as text")
        yield* first.stop

        const second = yield* startService(dataDir)
        assert.deepStrictEqual(yield* query(second.url, "select text from note"), [
          { text: "kept" }
        ])
        yield* second.stop

        yield* fs.rename(home, `${home}.away`)
        const error = yield* Effect.flip(startService(dataDir))
        assert.include(error.message, `${home}, which does not exist`)
        yield* fs.rename(`${home}.away`, home)
      }),
    { tags: "long" }
  )
})
