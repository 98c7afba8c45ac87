/** Work on many items: other work runs between its slices, whatever the items are read from. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { forEachInSlices } from "#server/platform/slices"

it.effect("reads items slice by slice, so that a long list is not gathered in one piece", () =>
  Effect.gen(function* () {
    const count = 1000
    let read = 0
    const items = function* () {
      while (read < count) yield read++
    }
    const done: Array<number> = []
    const all = yield* Effect.forkChild(
      forEachInSlices(items(), (item) => done.push(item)),
      { startImmediately: true }
    )
    assert.isAtLeast(done.length, 1)
    assert.isBelow(read, count)
    yield* Fiber.join(all)
    assert.deepStrictEqual(
      done,
      Array.from({ length: count }, (_, index) => index)
    )
  })
)
