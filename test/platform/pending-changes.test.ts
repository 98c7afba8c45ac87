/** Changes that fail are repeated until they are applied. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { makePendingBatches } from "#server/platform/pending-changes"

describe("pending changes", () => {
  it.effect(
    "retries a failing change of a batch until it succeeds, and applies the others at once",
    () =>
      Effect.gen(function* () {
        let failures = 3
        const applied: Array<string> = []
        const applyUntilDone = yield* makePendingBatches
        yield* applyUntilDone(["a", "b"], (keys) =>
          Effect.sync(() => {
            if (keys.includes("a") && failures-- > 0) throw new Error("the database is away")
            applied.push(...keys)
          })
        )
        assert.deepStrictEqual(applied, ["b"])
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(applied, ["b", "a"])
      })
  )
})
