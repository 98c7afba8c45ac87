/** The pace at which links attach again. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  attachingMax,
  attachingMillis,
  linksPerBatch,
  makeReattachments,
  pauseMinMillis
} from "#server/links/reattachments"

const batches = 10

describe("links that lost their entities together", () => {
  it.effect("attaches links again a few at a time, in the order of their arrival", () =>
    Effect.gen(function* () {
      const acquireSlot = yield* makeReattachments
      const started: Array<number> = []
      yield* Effect.forEach(
        Array.from({ length: batches * linksPerBatch }, (_, link) => link),
        (link) =>
          Effect.forkChild(
            Effect.map(acquireSlot, (end) => {
              started.push(link)
              end()
            })
          )
      )
      for (let passed = 1; passed <= batches; passed++) {
        yield* TestClock.adjust(passed === 1 ? 0 : pauseMinMillis)
        assert.lengthOf(started, passed * linksPerBatch)
      }
      assert.deepStrictEqual(
        started,
        started.toSorted((a, b) => a - b)
      )
    })
  )

  it.effect("limits how many links attach again at a time, whatever becomes of one", () =>
    Effect.gen(function* () {
      const acquireSlot = yield* makeReattachments
      const ends: Array<() => void> = []
      yield* Effect.forEach(Array.from({ length: 2 * attachingMax + 1 }), () =>
        Effect.forkChild(Effect.map(acquireSlot, (end) => ends.push(end)))
      )
      yield* TestClock.adjust(attachingMillis / 2)
      assert.lengthOf(ends, attachingMax)
      for (const end of ends.slice(0, 2)) {
        end()
        end()
      }
      yield* TestClock.adjust(pauseMinMillis)
      assert.lengthOf(ends, attachingMax + 2)
      yield* TestClock.adjust(attachingMillis / 2 + batches * pauseMinMillis)
      assert.lengthOf(ends, 2 * attachingMax)
      yield* TestClock.adjust(attachingMillis)
      assert.lengthOf(ends, 2 * attachingMax + 1)
    })
  )

  it.effect(
    "attaches few links again without a wait for a slot, nor for a link that has ended",
    () =>
      Effect.gen(function* () {
        const acquireSlot = yield* makeReattachments
        yield* acquireSlot
        const ended = yield* Effect.forkChild(acquireSlot)
        yield* Effect.yieldNow
        yield* Fiber.interrupt(ended)
        const next = yield* Effect.forkChild(acquireSlot)
        yield* TestClock.adjust(pauseMinMillis)
        yield* Fiber.join(next)
      })
  )
})
