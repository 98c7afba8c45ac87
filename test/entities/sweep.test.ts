/** The sweep of overdue rows, of which some cannot be woken. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeSweep } from "#entities/sweep"

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

describe("a sweep of overdue rows", () => {
  it.effect("reaches overdue rows behind more unreadable ones than a page holds", () =>
    Effect.gen(function* () {
      const unreadable = 450
      let rows = numbers(0, 700)
      const sweep = makeSweep(
        (limit, skipped) => Effect.sync(() => rows.slice(skipped, skipped + limit)),
        (row) =>
          row < unreadable
            ? Effect.fail("unreadable")
            : Effect.sync(() => void (rows = rows.filter((other) => other !== row)))
      )
      yield* Effect.repeat(sweep, { times: 4 })
      assert.deepStrictEqual(rows, numbers(0, unreadable))
      rows = [...rows, 1000]
      yield* Effect.repeat(sweep, { times: 4 })
      assert.deepStrictEqual(rows, numbers(0, unreadable))
    })
  )
})
