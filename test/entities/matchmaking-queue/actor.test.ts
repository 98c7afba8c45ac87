/**
 * Live matchmaking queue: the outcome of each ticket while rooms accept or refuse players and streams
 * break. See `queue-harness.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { matchmaking } from "#rpc/limits"
import type { QueueMode } from "#entities/matchmaking-queue/state"
import { queueModes, queueSteps } from "../../support/generators.ts"
import { QueueWorld } from "../../support/queue-harness.ts"

const second = 1000
const mode: QueueMode = { minPlayers: 2, maxPlayers: 4, fillTimeoutSeconds: 15 }

describe("a live queue", () => {
  it("matches at once and notifies the tickets of their room once they have seats", () => {
    const queue = new QueueWorld(mode)
    queue.enqueue("a")
    queue.enqueue("b", "n2")
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
    assert.strictEqual(queue.outcomes.size, 0)
    queue.seat()
    assert.deepStrictEqual(Array.from(queue.outcomes), [
      ["a", "r1"],
      ["b", "r1"]
    ])
  })

  it("wakes for the fill timeout to the millisecond", () => {
    const queue = new QueueWorld(mode)
    queue.enqueue("a")
    queue.wait(15 * second - 1)
    assert.deepStrictEqual(queue.matches, [])
    queue.wait(1)
    assert.deepStrictEqual(queue.matches, [["a"]])
  })

  it("matches waiting tickets under the newest config, not under an older one that arrives late", () => {
    const queue = new QueueWorld({ ...mode, minPlayers: 3 })
    queue.enqueue("a")
    queue.enqueue("b")
    queue.configure(mode, 0)
    assert.deepStrictEqual(queue.matches, [])
    queue.mode = mode
    queue.configure(mode, 2)
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
  })

  it("looks for rooms before it opens one, at most once a second", () => {
    const queue = new QueueWorld(mode, false)
    queue.rooms.set("r1", 2)
    queue.enqueue("a")
    queue.enqueue("b")
    assert.strictEqual(queue.looks, 1)
    assert.deepStrictEqual(queue.matches, [])
    queue.found()
    assert.deepInclude(queue.making[0], { kind: "fill", roomId: "r1" })
    queue.seat()
    queue.enqueue("c")
    assert.isFalse(queue.looking)
    queue.wait(second - 1)
    assert.isFalse(queue.looking)
    queue.wait(1)
    assert.isTrue(queue.looking)
  })

  it("keeps matching during a new listing while the last one is recent", () => {
    const queue = new QueueWorld(mode, false)
    queue.enqueue("a")
    queue.found()
    queue.wait(second)
    assert.isTrue(queue.looking)
    queue.enqueue("b")
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
    queue.found()
    queue.wait(10 * second)
    queue.enqueue("c")
    queue.enqueue("d")
    assert.isTrue(queue.looking)
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
  })

  it("does not look while nobody waits", () => {
    const queue = new QueueWorld(mode, false)
    queue.cancel("a")
    queue.enqueue("b")
    queue.cancel("b")
    queue.found()
    queue.wait(10 * second)
    assert.strictEqual(queue.looks, 1)
  })

  it("goes on filling the room it opened", () => {
    const queue = new QueueWorld(mode)
    for (const ticket of ["a", "b"]) queue.enqueue(ticket)
    queue.seat()
    queue.enqueue("c")
    queue.seat()
    assert.strictEqual(queue.outcomes.get("c"), "r1")
  })

  it("lets tickets wait on that a room refused, and does not ask it again at once", () => {
    const queue = new QueueWorld(mode)
    queue.rooms.set("r1", 2)
    queue.enqueue("a")
    queue.refuse()
    assert.strictEqual(queue.actor.waiting, 1)
    assert.lengthOf(queue.making, 0)
    queue.wait(second)
    assert.lengthOf(queue.making, 1)
  })

  it("lets those wait on for whom a room had too few seats", () => {
    const queue = new QueueWorld(mode)
    queue.rooms.set("r1", 2)
    queue.enqueue("a")
    queue.seat()
    queue.enqueue("b")
    queue.rooms.set("r1", 0)
    queue.seat()
    assert.strictEqual(queue.actor.waiting, 1)
    queue.enqueue("c")
    queue.seat()
    assert.strictEqual(queue.outcomes.get("b"), queue.outcomes.get("c"))
  })

  it("sends a repeated ticket its match instead of a new one", () => {
    const queue = new QueueWorld(mode)
    queue.enqueue("a")
    queue.enqueue("b", "n2")
    queue.unwatch("n1")
    queue.seat()
    assert.isFalse(queue.outcomes.has("a"))
    queue.watch("n1")
    assert.strictEqual(queue.outcomes.get("a"), "r1")
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
  })

  it("remembers a match for a minute", () => {
    for (const [millis, again] of [
      [60 * second, 0],
      [60 * second + 1, 1]
    ] as const) {
      const queue = new QueueWorld({ ...mode, maxPlayers: 2 })
      queue.enqueue("a", "n1")
      queue.enqueue("b", "n2")
      queue.unwatch("n1")
      queue.seat()
      queue.wait(millis)
      for (const ticket of ["c", "d"]) queue.enqueue(ticket, "n2")
      queue.seat()
      queue.watch("n1")
      assert.strictEqual(queue.actor.waiting, again)
    }
  })

  it("does not match a ticket again that comes again while its match is in the making", () => {
    const queue = new QueueWorld(mode)
    queue.enqueue("a")
    queue.enqueue("b", "n2")
    queue.unwatch("n1")
    queue.watch("n1")
    queue.enqueue("c", "n2")
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
    queue.seat()
    assert.strictEqual(queue.outcomes.get("a"), "r1")
  })

  it("drops the tickets of a node that stops watching", () => {
    const queue = new QueueWorld(mode)
    queue.enqueue("a")
    queue.unwatch("n1")
    assert.strictEqual(queue.actor.waiting, 0)
    queue.watch("n1")
    assert.strictEqual(queue.actor.waiting, 1)
  })

  it("keeps the tickets of a node whose old stream ends after its new one began", () => {
    const queue = new QueueWorld(mode)
    const { n1 } = queue.gateways
    const old = n1.watcher
    n1.watcher = undefined
    queue.watch("n1")
    queue.enqueue("a")
    assert.isDefined(old)
    if (old !== undefined) queue.actor.detach("n1", old)
    assert.strictEqual(queue.actor.waiting, 1)
  })

  it("ends the streams of its nodes when it moves, and says nothing more", () => {
    const queue = new QueueWorld(mode)
    for (const ticket of ["a", "b"]) queue.enqueue(ticket)
    queue.actor.end()
    assert.deepStrictEqual(queue.ended, ["n1", "n2"])
    queue.seat()
    assert.strictEqual(queue.outcomes.size, 0)
  })

  it("takes no ticket from a node that does not watch: it would stay for ever", () => {
    const queue = new QueueWorld(mode)
    queue.enqueue("a")
    const { watcher } = queue.gateways.n1
    queue.unwatch("n1")
    queue.gateways.n1.watcher = watcher
    queue.enqueue("b")
    assert.strictEqual(queue.actor.waiting, 0)
  })

  it("cancels a ticket that waits, and not one that was matched", () => {
    const queue = new QueueWorld(mode)
    queue.enqueue("a")
    queue.cancel("a")
    assert.strictEqual(queue.outcomes.get("a"), "cancelled")
    queue.enqueue("b")
    queue.enqueue("c")
    queue.seat()
    queue.cancel("b")
    assert.strictEqual(queue.gateways.n1.cancels.size, 0)
    assert.strictEqual(queue.outcomes.get("b"), "r1")
  })

  it("answers a cancellation in the making when the match is made, or is not", () => {
    const queue = new QueueWorld(mode)
    for (const ticket of ["a", "b"]) queue.enqueue(ticket)
    queue.cancel("a")
    assert.strictEqual(queue.gateways.n1.cancels.size, 1)
    queue.refuse()
    assert.strictEqual(queue.outcomes.get("a"), "cancelled")
    assert.strictEqual(queue.actor.waiting, 1)
    queue.enqueue("c")
    queue.cancel("b")
    queue.seat()
    assert.strictEqual(queue.gateways.n1.cancels.size, 0)
    assert.strictEqual(queue.outcomes.get("b"), "r1")
  })

  it("goes by the mode's numbers as the newest ticket brings them", () => {
    const queue = new QueueWorld({ ...mode, minPlayers: 3 })
    queue.enqueue("a")
    queue.enqueue("b")
    assert.deepStrictEqual(queue.matches, [])
    queue.mode = { ...mode, maxPlayers: 2 }
    queue.enqueue("c")
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
  })

  it("is full at its bound, and not for tickets it has", () => {
    const queue = new QueueWorld(mode, false)
    const tickets = Array.from({ length: matchmaking.ticketsPerQueue }, (_, i) => `t${i}`)
    queue.enqueueAll(tickets)
    queue.enqueueAll(["t0"])
    assert.strictEqual(queue.outcomes.size, 0)
    queue.enqueue("late")
    assert.deepStrictEqual(Array.from(queue.outcomes), [["late", "full"]])
  })
})

describe("a queue, whatever happens to it", () => {
  it("gives each ticket one seat or none, and one answer", () => {
    fc.assert(
      fc.property(queueModes, queueSteps, (settings, steps) => {
        const queue = new QueueWorld(settings, false)
        const owners = new Map<string, "n1" | "n2">()
        for (const [index, step] of steps.entries()) {
          switch (step.kind) {
            case "enqueue":
              owners.set(`t${index}`, step.node)
              queue.enqueue(`t${index}`, step.node)
              break
            case "cancel": {
              const ticket = Array.from(owners)[step.index]
              if (ticket !== undefined) queue.cancel(...ticket)
              break
            }
            case "wait":
              queue.wait(step.millis)
              break
            case "watch":
            case "unwatch":
              queue[step.kind](step.node)
              break
            default:
              queue[step.kind]()
          }
        }
        for (const node of ["n1", "n2"] as const) queue.watch(node)
        while (queue.looking || queue.making.length > 0) {
          queue.found()
          queue.seat()
        }
        for (const [ticket, node] of owners) {
          const outcome = queue.outcomes.get(ticket)
          const waits = queue.gateways[node].held.has(ticket)
          assert.strictEqual(waits, outcome === undefined)
          assert.strictEqual(queue.seats.get(ticket), outcome === "cancelled" ? undefined : outcome)
        }
        assert.strictEqual(queue.actor.waiting, owners.size - queue.outcomes.size)
      }),
      { numRuns: 500 }
    )
  })
})
