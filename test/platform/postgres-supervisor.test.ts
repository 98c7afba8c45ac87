/** Services restart their embedded Postgres, and leave it to those that still use it. */
import { createServer } from "node:net"
import { DatabaseSync } from "node:sqlite"
import { NodeServices } from "@effect/platform-node"
import { PgClient, PgConnection } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Path, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { lockFiles } from "#server/platform/postgres/lock-files"
import { clientPrefix } from "#server/platform/postgres/server"
import {
  assertRuns,
  assertStopped,
  makeDataDir,
  portOf,
  postmasterPid,
  query,
  spawnService,
  startService
} from "../support/embedded-postgres.ts"

/** A data directory with a stopped server. */
class DataDir extends Context.Service<DataDir, string>()("test/platform/supervisor.test/DataDir") {
  static readonly layer = Layer.effect(
    DataDir,
    Effect.tap(makeDataDir, (dataDir) => Effect.scoped(startService(dataDir)))
  )
}

const patience = { times: 600, schedule: Schedule.spaced("50 millis") }

/** Kills the server as the system does when memory is short. */
const killServer = (dataDir: string) =>
  Effect.map(postmasterPid(dataDir), ({ pid }) => process.kill(pid, "SIGKILL"))

const untilStopped = (url: Redacted.Redacted) =>
  Effect.flip(query(url, "select 1")).pipe(
    Effect.filterOrFail(({ reason }) => reason._tag === "ConnectionError"),
    Effect.retry(patience)
  )

const untilRuns = (url: Redacted.Redacted) => Effect.retry(assertRuns(url), patience)

/** A session of a service that is counted by its name alone, as older releases are. */
const olderService = (url: Redacted.Redacted) =>
  PgConnection.make({ url, database: "postgres", applicationName: `${clientPrefix}older` })

const services = Layer.provideMerge(DataDir.layer, NodeServices.layer)

layer(services, { excludeTestServices: true })("a supervised Postgres", (it) => {
  it.effect("restarts a killed Postgres on its port for all services that use it", () =>
    Effect.gen(function* () {
      const dataDir = yield* DataDir
      const first = yield* startService(dataDir)
      const second = yield* startService(dataDir)
      yield* query(first.url, "create table note as select 'kept' as text")
      yield* killServer(dataDir)
      yield* Effect.sync(first.isRestarting).pipe(
        Effect.filterOrFail(Boolean),
        Effect.retry({ times: 6000, schedule: Schedule.spaced("1 millis") })
      )
      yield* untilRuns(first.url)
      yield* untilRuns(second.url)
      assert.deepStrictEqual(yield* query(second.url, "select text from note"), [{ text: "kept" }])
      for (const { isRestarting } of [first, second]) {
        yield* Effect.retry(
          Effect.filterOrFail(Effect.sync(isRestarting), (is) => !is),
          patience
        )
      }
      // The service that did not start it restarts it, too, once it is the only one.
      yield* first.stop
      yield* killServer(dataDir)
      yield* untilRuns(second.url)
      yield* second.stop
      yield* assertStopped(second.url)
    })
  )

  it.effect("finds a Postgres that came back on another port, because its port was taken", () =>
    Effect.gen(function* () {
      const path = yield* Path.Path
      const dataDir = yield* DataDir
      const service = yield* startService(dataDir)
      const pool = PgClient.layer({ url: service.url, stream: service.connect })
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`select 1`
        const lock = new DatabaseSync(path.join(dataDir, lockFiles.start))
        yield* Effect.retry(
          Effect.try(() => lock.exec("begin exclusive")),
          patience
        )
        yield* killServer(dataDir)
        yield* untilStopped(service.url)
        const intruder = createServer((socket) => socket.destroy())
        yield* Effect.callback<void>((resume) => {
          intruder.listen(Number(portOf(service.url)), "127.0.0.1", () => resume(Effect.void))
          intruder.once("error", (error) => resume(Effect.die(error)))
        })
        yield* Effect.addFinalizer(() => Effect.sync(() => intruder.close()))
        lock.exec("rollback")
        lock.close()
        const rows = yield* Effect.retry(sql`select 1 as one`, patience)
        assert.deepStrictEqual(rows, [{ one: 1 }])
      }).pipe(Effect.provide(pool))
    })
  )

  it.effect("leaves Postgres to a service of an older release, and to the last of them", () =>
    Effect.gen(function* () {
      const dataDir = yield* DataDir
      const service = yield* startService(dataDir)
      yield* Effect.gen(function* () {
        yield* olderService(service.url)
        yield* service.stop
        yield* assertRuns(service.url)
      }).pipe(Effect.scoped)

      const next = yield* startService(dataDir)
      assert.strictEqual(portOf(next.url), portOf(service.url))
      // An older service counts sessions of this form that are not its own.
      const own = new URL(Redacted.value(next.url)).searchParams.get("application_name") ?? ""
      assert.match(own, new RegExp(`^${clientPrefix}.`))
      const sessions = yield* query(
        Redacted.make(Redacted.value(next.url).replace(own, "visitor")),
        `select count(*)::int as count from pg_stat_activity where application_name = '${own}'`
      )
      assert.deepStrictEqual(sessions, [{ count: 1 }])
      yield* next.stop
      yield* assertStopped(next.url)
    })
  )

  it.effect(
    "keeps Postgres for a service of an older release when all others were killed",
    () =>
      Effect.gen(function* () {
        const dataDir = yield* makeDataDir
        const killed = yield* spawnService(dataDir, 600)
        yield* Effect.gen(function* () {
          const older = yield* olderService(killed.url)
          yield* killed.kill
          // The watcher looks for sessions before it stops the server.
          const visits = (count: number) =>
            older
              .query("select 1 from pg_stat_activity where application_name = 'player-backend'")
              .pipe(
                Effect.filterOrFail(({ rowCount }) => rowCount === count),
                Effect.retry({ times: 10_000, schedule: Schedule.spaced("1 millis") })
              )
          yield* Effect.andThen(visits(1), visits(0))
          yield* assertRuns(killed.url)
        }).pipe(Effect.scoped)
        yield* untilStopped(killed.url)
      }),
    { tags: "long" }
  )
})
