/** Sliding windows: exact limits that all nodes share, by the clock of Postgres. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { type RateWindow } from "#rpc/auth"
import { RateWindowRepository } from "#sql/rate-windows"
import { Throttles } from "#server/platform/throttles"
import { buildAnother, coreOfNode, SharedDatabase } from "../support/http-stack.ts"
import { passRateWindows } from "../support/rate-windows.ts"

const Node = coreOfNode({ SVC_THROTTLES: "on" }).pipe(Layer.provideMerge(SharedDatabase.layer))

/** How many of so many requests at once pass, and how long the others are to wait. */
const attempt = Effect.fnUntraced(function* (window: RateWindow, key: string, times: number) {
  const throttles = yield* Throttles
  const outcomes = yield* Effect.forEach(
    Array.from({ length: times }),
    () => Effect.result(throttles.take(window, key)),
    { concurrency: 16 }
  )
  const waits = outcomes.flatMap((it) =>
    it._tag === "Failure" ? [it.failure.details.retryAfterSeconds] : []
  )
  return { passed: times - waits.length, wait: Math.max(0, ...waits) }
})

layer(Node)("rate windows", (it) => {
  it.effect("allows no more requests than a rate limit in any window of its length", () =>
    Effect.gen(function* () {
      const window = { limit: 30, seconds: 60 }
      // Ten requests every ten seconds: places free up when the requests that took them leave the window.
      const passed: Array<number> = []
      for (let i = 0; i < 12; i++) {
        passed.push((yield* attempt(window, "steady", 10)).passed)
        yield* passRateWindows(10)
      }
      assert.deepStrictEqual(passed, [10, 10, 10, 0, 0, 0, 10, 10, 10, 0, 0, 0])
    })
  )

  it.effect("names the time until the oldest counted request leaves the window", () =>
    Effect.gen(function* () {
      const window = { limit: 2, seconds: 3600 }
      yield* attempt(window, "wait", 1)
      yield* passRateWindows(600)
      const first = yield* attempt(window, "wait", 3)
      assert.strictEqual(first.passed, 1)
      assert.closeTo(first.wait, 3000, 60)
      yield* passRateWindows(3000)
      const second = yield* attempt(window, "wait", 3)
      assert.strictEqual(second.passed, 1)
      assert.closeTo(second.wait, 600, 60)
    })
  )

  it.effect("counts the requests of a rate window over all nodes, whatever their clocks say", () =>
    Effect.gen(function* () {
      const other = yield* buildAnother(coreOfNode({ SVC_THROTTLES: "on" }))
      const window = { limit: 300, seconds: 60 }
      const both = yield* Effect.all(
        [
          attempt(window, "shared", 400),
          Effect.provideContext(attempt(window, "shared", 400), other)
        ],
        { concurrency: 2 }
      )
      assert.strictEqual(both[0].passed + both[1].passed, 300)
    })
  )

  it.effect("remembers a full window, so that retries cost no statement", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const window = { limit: 2, seconds: 60 }
      assert.strictEqual((yield* attempt(window, "full", 3)).passed, 2)
      yield* sql`delete from rate_windows where key = 'full'`
      assert.strictEqual((yield* attempt(window, "full", 50)).passed, 0)
      assert.lengthOf(yield* sql`select 1 from rate_windows where key = 'full'`, 0)
    })
  )

  it.effect("follows a rate limit that changes", () =>
    Effect.gen(function* () {
      const repository = yield* RateWindowRepository
      const take = (limit: number) =>
        Effect.map(
          repository.take({ key: "changing", limit, windowMillis: 60_000 }),
          ({ granted }) => granted
        )
      const outcomes: Array<boolean> = []
      for (const limit of [3, 3, 3, 3, 2, 4, 4]) outcomes.push(yield* take(limit))
      assert.deepStrictEqual(outcomes, [true, true, true, false, false, true, false])
    })
  )

  it.effect("grants what a raised limit allows, also while the window is known to be full", () =>
    Effect.gen(function* () {
      const passed: Array<number> = []
      for (const limit of [2, 5, 3, 6]) {
        passed.push((yield* attempt({ limit, seconds: 60 }, "raised", 9)).passed)
      }
      assert.deepStrictEqual(passed, [2, 3, 0, 1])
    })
  )

  it.effect("never waits longer than a window after the clock of Postgres was set back", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const window = { limit: 2, seconds: 60 }
      yield* attempt(window, "set back", 2)
      yield* sql`
        update rate_windows set taken = array(select t + 600000 from unnest(taken) t)
        where key = 'set back'`
      const refused = yield* attempt(window, "set back", 1)
      assert.strictEqual(refused.passed, 0)
      assert.isAtMost(refused.wait, 60)
      yield* passRateWindows(60)
      assert.strictEqual((yield* attempt(window, "set back", 3)).passed, 2)
    })
  )

  it.effect("shares a statement between the windows of different keys", () =>
    Effect.gen(function* () {
      const window = { limit: 5, seconds: 60 }
      const keys = Array.from({ length: 150 }, (_, index) => `key ${index}`)
      const passed = yield* Effect.forEach(keys, (key) => attempt(window, key, 6), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(new Set(passed.map((each) => each.passed)), new Set([5]))
    })
  )

  it.effect("deletes windows that count nothing any more", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* attempt({ limit: 5, seconds: 10 }, "swept", 1)
      yield* attempt({ limit: 5, seconds: 3600 }, "kept", 1)
      yield* passRateWindows(120)
      const left = sql`select key from rate_windows where key in ('swept', 'kept')`
      const rows = yield* Effect.repeat(Effect.andThen(TestClock.adjust("1 minute"), left), {
        until: ({ length }) => length < 2
      })
      assert.deepStrictEqual(rows, [{ key: "kept" }])
    })
  )
})
