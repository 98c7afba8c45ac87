/** The pace at which links attach again. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  attachingMax,
  attachingMillis,
  linksPerTurn,
  makeReattachments,
  turnMillis
} from "#server/links/reattachments"

const turns = 10

describe("links that lost their entities together", () => {
  it.effect("attach again a few at a time, in the order of their arrival", () =>
    Effect.gen(function* () {
      const turn = yield* makeReattachments
      const started: Array<number> = []
      yield* Effect.forEach(
        Array.from({ length: turns * linksPerTurn }, (_, link) => link),
        (link) =>
          Effect.forkChild(
            Effect.map(turn, (end) => {
              started.push(link)
              end()
            })
          )
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

  it.effect("attach again in a bounded number at a time, whatever becomes of one", () =>
    Effect.gen(function* () {
      const turn = yield* makeReattachments
      const ends: Array<() => void> = []
      yield* Effect.forEach(Array.from({ length: 2 * attachingMax + 1 }), () =>
        Effect.forkChild(Effect.map(turn, (end) => ends.push(end)))
      )
      yield* TestClock.adjust(attachingMillis / 2)
      assert.lengthOf(ends, attachingMax)
      for (const end of ends.slice(0, 2)) {
        end()
        end()
      }
      yield* TestClock.adjust(turnMillis)
      assert.lengthOf(ends, attachingMax + 2)
      yield* TestClock.adjust(attachingMillis / 2 + turns * turnMillis)
      assert.lengthOf(ends, 2 * attachingMax)
      yield* TestClock.adjust(attachingMillis)
      assert.lengthOf(ends, 2 * attachingMax + 1)
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
