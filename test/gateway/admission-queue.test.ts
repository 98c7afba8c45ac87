/** The queue from which a node admits connections that come at once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { AdmissionQueue, startsPerIteration } from "#server/gateway/admission-queue"

/** Turns whose iterations of the event loop the test runs. */
const makeTurns = () => {
  let next: Array<() => void> = []
  const queue = new AdmissionQueue((run) => void next.push(run))
  const iterate = Effect.andThen(
    Effect.sync(() => {
      const due = next
      next = []
      for (const run of due) run()
    }),
    Effect.yieldNow
  )
  const started: Array<string> = []
  const arrive = (environmentId: string, name: string) =>
    Effect.forkChild(
      Effect.map(queue.await(environmentId), () => void started.push(name)),
      { startImmediately: true }
    )
  return { arrive, iterate, started, isIdle: () => next.length === 0 }
}

const many = (environmentId: string, count: number): ReadonlyArray<readonly [string, string]> =>
  Array.from({ length: count }, (_, index) => [environmentId, `${environmentId}${index}`] as const)

describe("the admission queue", () => {
  it.effect("starts connections at once while few come", () =>
    Effect.gen(function* () {
      const { arrive, iterate, isIdle, started } = makeTurns()
      for (const each of many("a", 3)) yield* arrive(...each)
      assert.deepStrictEqual(started, ["a0", "a1", "a2"])
      yield* iterate
      assert.isTrue(isIdle(), "a turn is scheduled while nobody waits")
    })
  )

  it.effect("starts many connections in order of arrival, a bounded number in each iteration", () =>
    Effect.gen(function* () {
      const { arrive, iterate, started } = makeTurns()
      const all = many("a", 2 * startsPerIteration + 5)
      for (const each of all) yield* arrive(...each)
      const counts = [started.length]
      for (let turn = 0; turn < 3; turn++) {
        yield* iterate
        counts.push(started.length)
      }
      assert.deepStrictEqual(counts, [
        startsPerIteration,
        2 * startsPerIteration,
        all.length,
        all.length
      ])
      assert.deepStrictEqual(
        started,
        all.map(([, name]) => name)
      )
    })
  )

  it.effect("alternates between environments when it starts waiting connections", () =>
    Effect.gen(function* () {
      const { arrive, iterate, started } = makeTurns()
      for (const each of many("a", 3 * startsPerIteration)) yield* arrive(...each)
      for (const each of many("b", 2)) yield* arrive(...each)
      yield* iterate
      assert.deepStrictEqual(started.slice(startsPerIteration, startsPerIteration + 4), [
        `a${startsPerIteration}`,
        "b0",
        `a${startsPerIteration + 1}`,
        "b1"
      ])
    })
  )

  it.effect("forgets a connection that closes while it waits for its turn", () =>
    Effect.gen(function* () {
      const { arrive, iterate, isIdle, started } = makeTurns()
      for (const each of many("a", startsPerIteration)) yield* arrive(...each)
      const closed = yield* arrive("b", "closed")
      yield* arrive("b", "open")
      yield* Fiber.interrupt(closed)
      yield* iterate
      assert.deepStrictEqual(started.slice(startsPerIteration), ["open"])
      yield* iterate
      assert.isTrue(isIdle(), "a turn is scheduled while nobody waits")
    })
  )
})
