/**
 * Players who arrive together at a matchmaking queue, in virtual time: they share as few rooms as hold
 * them, however long the rooms take to open.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import type { QueueMode } from "#entities/matchmaking-queue/state"
import { matchmaking } from "#entities/matchmaking-queue/state"
import { QueueHarness } from "../../support/queue-harness.ts"

/** A queue whose rooms take random time to open and to fill, and whose tickets arrive by a plan. */
const play = (
  mode: QueueMode,
  arrivals: ReadonlyArray<number>,
  latency: () => number
): QueueHarness => {
  const queue = new QueueHarness(mode)
  const from = queue.now
  /** Times at which a pending match completes, in the order of the matches. */
  const completions: Array<number> = []
  const planCompletions = (): void => {
    while (completions.length < queue.pendingMatches.length) completions.push(queue.now + latency())
  }
  const completeUntil = (time: number): void => {
    for (let due = Math.min(...completions); due <= time; due = Math.min(...completions)) {
      queue.wait(Math.max(0, due - queue.now))
      const index = completions.indexOf(due)
      completions.splice(index, 1)
      queue.seat(index)
      planCompletions()
    }
    queue.wait(Math.max(0, time - queue.now))
    planCompletions()
  }
  for (const [index, at] of arrivals.entries()) {
    completeUntil(from + at)
    queue.enqueue(`t${index}`, index % 2 === 0 ? "n1" : "n2")
    planCompletions()
  }
  for (let seconds = 0; seconds < 20; seconds++) completeUntil(queue.now + 1000)
  return queue
}

const roomsOf = ({ outcomes }: QueueHarness, players: number): number => {
  assert.strictEqual(outcomes.size, players, "every ticket has its room")
  return new Set(outcomes.values()).size
}

describe("players who arrive together", () => {
  for (const minPlayers of [1, 2]) {
    for (const apart of [0, 10, 50, 200]) {
      it.effect(
        `share a room ${apart} ms apart with minPlayers ${minPlayers}, in 1,000 pairs`,
        () =>
          Effect.gen(function* () {
            const random = yield* Random.Random
            const pairs = Array.from({ length: 1000 }, (_, i) => [
              i * 1000,
              i * 1000 + apart
            ]).flat()
            for (const maxPlayers of [2, 8]) {
              const mode = { minPlayers, maxPlayers, fillTimeoutSeconds: 15 }
              const latency = () => 1 + random.nextDoubleUnsafe() * 300
              const queue = play(mode, pairs, latency)
              assert.strictEqual(roomsOf(queue, 2000), 2000 / maxPlayers)
            }
          }).pipe(Random.withSeed(`${minPlayers}/${apart}`))
      )
    }
  }

  it.effect("fill as few rooms as hold them when 100 tickets come at once or within 100 ms", () =>
    Effect.gen(function* () {
      const random = yield* Random.Random
      for (const minPlayers of [1, 2, 8]) {
        for (const apart of [0, 1]) {
          const mode = { minPlayers, maxPlayers: 8, fillTimeoutSeconds: 1 }
          const arrivals = Array.from({ length: 100 }, (_, i) => i * apart)
          const queue = play(mode, arrivals, () => 1 + random.nextDoubleUnsafe() * 300)
          assert.strictEqual(roomsOf(queue, 100), 13)
        }
      }
    }).pipe(Random.withSeed("burst"))
  )

  it("share the next room when the opening of the first fails", () => {
    const queue = new QueueHarness({ minPlayers: 1, maxPlayers: 4, fillTimeoutSeconds: 15 })
    for (const ticket of ["a", "b"]) queue.enqueue(ticket)
    queue.enqueue("c", "n2")
    queue.refuse()
    assert.deepStrictEqual(queue.matches, [["a"], ["a", "b", "c"]])
  })

  it("share the next room when the runner that opens the first dies", () => {
    const queue = new QueueHarness({ minPlayers: 1, maxPlayers: 4, fillTimeoutSeconds: 15 })
    queue.enqueue("a", "n2")
    for (const ticket of ["b", "c"]) queue.enqueue(ticket)
    queue.unwatch("n2")
    queue.wait(matchmaking.openingMillis - 1)
    assert.deepStrictEqual(queue.matches, [["a"]])
    queue.wait(1)
    assert.deepStrictEqual(queue.matches, [["a"], ["b", "c"]])
    queue.refuse()
    queue.seat()
    assert.strictEqual(queue.outcomes.get("b"), queue.outcomes.get("c"))
    assert.strictEqual(queue.actor.waiting, 0)
  })

  it("open the next room when the first locks before they get its seats", () => {
    const queue = new QueueHarness({ minPlayers: 1, maxPlayers: 4, fillTimeoutSeconds: 15 })
    for (const ticket of ["a", "b", "c"]) queue.enqueue(ticket)
    queue.seat()
    queue.refuse()
    assert.deepStrictEqual(queue.matches, [["a"], ["b", "c"], ["b", "c"]])
    queue.seat()
    assert.strictEqual(queue.outcomes.get("b"), queue.outcomes.get("c"))
    assert.notStrictEqual(queue.outcomes.get("a"), queue.outcomes.get("b"))
  })

  it("leave their seat to the next when they cancel while the room opens", () => {
    const queue = new QueueHarness({ minPlayers: 1, maxPlayers: 2, fillTimeoutSeconds: 15 })
    for (const ticket of ["a", "b"]) queue.enqueue(ticket)
    queue.cancel("b")
    assert.strictEqual(queue.outcomes.get("b"), "cancelled")
    queue.enqueue("c", "n2")
    queue.seat()
    queue.seat()
    assert.strictEqual(queue.outcomes.get("a"), queue.outcomes.get("c"))
    assert.lengthOf(queue.matches, 2)
  })

  it("share the room that opened before a config push changed the mode", () => {
    const mode = { minPlayers: 1, maxPlayers: 4, fillTimeoutSeconds: 15 }
    const queue = new QueueHarness(mode)
    queue.enqueue("a")
    queue.enqueue("b")
    queue.configure({ ...mode, minPlayers: 2, maxPlayers: 2 }, 2)
    queue.seat()
    queue.seat()
    assert.strictEqual(queue.outcomes.get("a"), queue.outcomes.get("b"))
  })

  it("keep the rooms that the queue knows when a listing fails", () => {
    const queue = new QueueHarness({ minPlayers: 1, maxPlayers: 4, fillTimeoutSeconds: 15 }, false)
    queue.enqueue("a")
    queue.found()
    queue.seat()
    queue.wait(5000)
    queue.enqueue("b")
    queue.found()
    queue.seat()
    queue.wait(5000)
    queue.enqueue("c")
    queue.found("failed")
    queue.seat()
    assert.strictEqual(queue.outcomes.get("c"), queue.outcomes.get("a"))
  })
})
