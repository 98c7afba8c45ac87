/** Reports of runners on each other: which are fresh, and whose session still lives. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { RunnerReports } from "#sql/runners"
import { SharedDatabase } from "../support/http-stack.ts"

/** A runner with its own database session. */
const runner = Effect.gen(function* () {
  const pool = poolLayer({ url: yield* SharedDatabase, connections: 1 })
  const services = yield* Layer.build(Layer.provideMerge(RunnerReports.layer, pool))
  return {
    reports: Context.get(services, RunnerReports),
    sql: Context.get(services, SqlClient.SqlClient)
  }
})

const nothing = { unreachable: [], suspects: [] }

layer(SharedDatabase.layer)("the reports of runners", (it) => {
  it.effect("passes the report of a runner to the others until it removes its own", () =>
    Effect.gen(function* () {
      const { reports } = yield* runner
      yield* reports.exchange({ ...nothing, self: "a:1", unreachable: ["b:1", "c:1"] })
      assert.deepStrictEqual(yield* reports.exchange({ ...nothing, self: "b:1" }), [
        { address: "a:1", unreachable: ["b:1", "c:1"], isPresent: true }
      ])
      yield* reports.remove("a:1")
      assert.deepStrictEqual(yield* reports.exchange({ ...nothing, self: "b:1" }), [])
      yield* reports.remove("b:1")
    })
  )

  it.effect("shows a suspected runner as absent once its database session has ended", () =>
    Effect.gen(function* () {
      const [{ reports, sql }, other] = [yield* runner, yield* runner]
      yield* other.reports.exchange({ ...nothing, self: "a:1" })
      const isPresent = (suspects: ReadonlyArray<string>) =>
        Effect.map(reports.exchange({ self: "b:1", unreachable: [], suspects }), (read) =>
          read.map((report) => report.isPresent)
        )
      assert.deepStrictEqual(yield* isPresent(["a:1"]), [true])
      yield* sql`
        select pg_terminate_backend(pid, 1000) from runner_reports where address = 'a:1'`
      assert.deepStrictEqual(yield* isPresent(["a:1"]), [false])
      assert.deepStrictEqual(yield* isPresent([]), [true])
      yield* Effect.forEach(["a:1", "b:1"], reports.remove)
    })
  )

  it.effect(
    "keeps a runner's report fresh for five seconds, lists it for a minute, and then deletes it",
    () =>
      Effect.gen(function* () {
        const { reports, sql } = yield* runner
        yield* reports.exchange({ ...nothing, self: "a:1" })
        const age = (seconds: number) =>
          sql`update runner_reports set reported_at = now() - make_interval(secs => ${seconds})
          where address = 'a:1'`
        const read = Effect.map(reports.exchange({ ...nothing, self: "b:1" }), (others) =>
          others.map(({ isPresent }) => isPresent)
        )
        yield* age(4)
        assert.deepStrictEqual(yield* read, [true])
        yield* age(6)
        assert.deepStrictEqual(yield* read, [false])
        yield* age(61)
        assert.deepStrictEqual(yield* read, [])
        yield* reports.remove("b:1")
        assert.deepStrictEqual(yield* sql`select address from runner_reports`, [])
      })
  )
})
