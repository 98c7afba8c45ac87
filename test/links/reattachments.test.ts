/** The pace at which links attach again. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { linksPerTurn, makeReattachments, turnMillis } from "#server/links/reattachments"

const turns = 10

describe("links that lost their entities together", () => {
  it.effect("attach again a few at a time, in the order of their arrival", () =>
    Effect.gen(function* () {
      const turn = yield* makeReattachments
      const started: Array<number> = []
      yield* Effect.forEach(
        Array.from({ length: turns * linksPerTurn }, (_, link) => link),
        (link) => Effect.forkChild(Effect.map(turn, () => started.push(link)))
      )
      for (let passed = 1; passed <= turns; passed++) {
        yield* TestClock.adjust(passed === 1 ? 0 : turnMillis)
        assert.lengthOf(started, passed * linksPerTurn)
      }
      assert.deepStrictEqual(
        started,
        started.toSorted((a, b) => a - b)
      )
    })
  )

  it.effect("do not wait when they are few, nor for one that has ended", () =>
    Effect.gen(function* () {
      const turn = yield* makeReattachments
      yield* turn
      const ended = yield* Effect.forkChild(turn)
      yield* Effect.yieldNow
      yield* Fiber.interrupt(ended)
      const next = yield* Effect.forkChild(turn)
      yield* TestClock.adjust(turnMillis)
      yield* Fiber.join(next)
    })
  )
})
