/**
 * Two runner processes whose list and shard locks are in a database of their own.
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { inject } from "vitest"
import { cloneDatabase } from "#testing/database"
import { newPlayer } from "#testing/players"
import { startCluster } from "#testing/runners"

/** Rows of the runner list and held shard locks, in one database. */
const countsOf = (url: Redacted.Redacted) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.make({ url })
    const [list] = yield* sql<{ exists: boolean }>`
      select to_regclass('cluster_runners') is not null as exists`
    const [locks] = yield* sql<{ count: number }>`
      select count(*)::int as count from pg_locks
      where locktype = 'advisory' and objsubid = 2
        and database = (select oid from pg_database where datname = current_database())`
    return { hasList: list?.exists, locks: locks?.count }
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer), Effect.orDie)

describe("a cluster with a database for its locks", () => {
  it.live(
    "holds all locks in a database of their own, and takes over those of a killed runner",
    () =>
      Effect.gen(function* () {
        const server = Redacted.make(inject("postgres"))
        const database = yield* cloneDatabase(server)
        const locks = yield* cloneDatabase(server)
        const { runners, target } = yield* startCluster({
          databaseUrl: Redacted.value(database),
          size: 2,
          env: { SVC_LOCK_DATABASE_URL: Redacted.value(locks) }
        })
        const [first, second] = runners
        if (first === undefined || second === undefined) return yield* Effect.die("No cluster")
        const all = Effect.map(countsOf(locks), (held) => held.locks === 300)
        const acquired = Effect.repeat(all, { until: (is) => is, schedule: Schedule.spaced(100) })
        yield* acquired
        assert.deepStrictEqual(yield* countsOf(database), { hasList: false, locks: 0 })
        yield* second.kill
        yield* acquired
        const player = yield* newPlayer({ ...target, url: first.url })
        const created = yield* player.socket.request({ t: "create", mode: "default" })
        assert.isTrue(created["ok"])
      }).pipe(Effect.scoped)
  )
})
