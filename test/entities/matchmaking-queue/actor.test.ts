/**
 * Live matchmaking queue: the outcome of each ticket while rooms accept or refuse players and streams
 * break. See `queue-harness.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { QueueMode } from "#entities/matchmaking-queue/state"
import { matchmaking } from "#entities/matchmaking-queue/state"
import { queueModes, queueSteps } from "../../support/generators.ts"
import { QueueHarness } from "../../support/queue-harness.ts"

const second = 1000
const mode: QueueMode = { minPlayers: 2, maxPlayers: 4, fillTimeoutSeconds: 15 }

describe("a matchmaking queue", () => {
  it("matches tickets at once, and sends them their room once they have seats", () => {
    const queue = new QueueHarness(mode)
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

  it("refuses an attachment that the cluster repeats, since replies are lost between the two", () => {
    const { actor } = new QueueHarness(mode)
    assert.isTrue(actor.activation.admit("n1", 1))
    assert.isTrue(actor.activation.accepts("n1", 1))
    assert.isFalse(actor.activation.admit("n1", 1))
    assert.isTrue(actor.activation.admit("n1", 2))
    assert.isFalse(actor.activation.accepts("n1", 1))
  })

  it("takes matchmaking tickets of an older release, which does not name its attachments", () => {
    const { actor } = new QueueHarness(mode)
    assert.isTrue(actor.activation.admit("n1", undefined))
    assert.isTrue(actor.activation.admit("n1", undefined))
    assert.isTrue(actor.activation.accepts("n1", undefined))
    assert.isFalse(actor.activation.accepts("n3", undefined))
  })

  it("does not offer a room again to a ticket that it refuses although it has seats", () => {
    const queue = new QueueHarness(mode)
    queue.rooms.set("r1", 3)
    queue.rooms.set("r2", 1)
    queue.bars.set("r1", new Set(["a"]))
    queue.enqueue("a")
    queue.seat()
    assert.deepInclude(queue.pendingMatches[0], { kind: "fill", roomId: "r2" })
    queue.seat()
    assert.strictEqual(queue.outcomes.get("a"), "r2")
  })

  it("opens another room for a ticket that every open room refuses, and fills those with others", () => {
    const queue = new QueueHarness(mode)
    queue.rooms.set("r1", 3)
    queue.bars.set("r1", new Set(["a"]))
    queue.enqueue("a")
    queue.seat()
    assert.deepStrictEqual(queue.pendingMatches, [])
    assert.strictEqual(queue.actor.waiting, 1)
    queue.enqueue("b")
    queue.seat()
    assert.strictEqual(queue.outcomes.get("b"), "r1")
    queue.wait(15 * second)
    assert.deepInclude(queue.pendingMatches[0], { kind: "open" })
    queue.seat()
    assert.strictEqual(queue.outcomes.get("a"), "r2")
  })

  it("starts a match exactly at the fill timeout", () => {
    const queue = new QueueHarness(mode)
    queue.enqueue("a")
    queue.wait(15 * second - 1)
    assert.deepStrictEqual(queue.matches, [])
    queue.wait(1)
    assert.deepStrictEqual(queue.matches, [["a"]])
  })

  it("matches waiting tickets under the newest config, not under an older one that arrives late", () => {
    const queue = new QueueHarness({ ...mode, minPlayers: 3 })
    queue.enqueue("a")
    queue.enqueue("b")
    queue.configure(mode, 0)
    assert.deepStrictEqual(queue.matches, [])
    queue.mode = mode
    queue.configure(mode, 2)
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
  })

  it("lists open rooms before the queue opens one, at most once a second", () => {
    const queue = new QueueHarness(mode, false)
    queue.rooms.set("r1", 2)
    queue.enqueue("a")
    queue.enqueue("b")
    assert.strictEqual(queue.listings, 1)
    assert.deepStrictEqual(queue.matches, [])
    queue.found()
    assert.deepInclude(queue.pendingMatches[0], { kind: "fill", roomId: "r1" })
    queue.seat()
    queue.enqueue("c")
    assert.isFalse(queue.listing)
    queue.wait(second - 1)
    assert.isFalse(queue.listing)
    queue.wait(1)
    assert.isTrue(queue.listing)
  })

  it("keeps matching during a new listing while the last one is recent", () => {
    const queue = new QueueHarness(mode, false)
    queue.enqueue("a")
    queue.found()
    queue.wait(second)
    assert.isTrue(queue.listing)
    queue.enqueue("b")
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
    queue.found()
    queue.wait(10 * second)
    queue.enqueue("c")
    queue.enqueue("d")
    assert.isTrue(queue.listing)
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
  })

  it("does not list rooms while no ticket waits", () => {
    const queue = new QueueHarness(mode, false)
    queue.cancel("a")
    queue.enqueue("b")
    queue.cancel("b")
    queue.found()
    queue.wait(10 * second)
    assert.strictEqual(queue.listings, 1)
  })

  it("fills the room that the queue opened with later tickets", () => {
    const queue = new QueueHarness(mode)
    for (const ticket of ["a", "b"]) queue.enqueue(ticket)
    queue.seat()
    queue.enqueue("c")
    queue.seat()
    assert.strictEqual(queue.outcomes.get("c"), "r1")
  })

  it("keeps tickets that a room refused, and does not retry the room at once", () => {
    const queue = new QueueHarness(mode)
    queue.rooms.set("r1", 2)
    queue.enqueue("a")
    queue.refuse()
    assert.strictEqual(queue.actor.waiting, 1)
    assert.lengthOf(queue.pendingMatches, 0)
    queue.wait(second)
    assert.lengthOf(queue.pendingMatches, 1)
  })

  it("keeps the tickets for which a room had too few seats", () => {
    const queue = new QueueHarness(mode)
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
    const queue = new QueueHarness(mode)
    queue.enqueue("a")
    queue.enqueue("b", "n2")
    queue.unwatch("n1")
    queue.seat()
    assert.isFalse(queue.outcomes.has("a"))
    queue.watch("n1")
    assert.strictEqual(queue.outcomes.get("a"), "r1")
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
  })

  it("remembers the match of a ticket for a minute", () => {
    for (const [millis, again] of [
      [60 * second, 0],
      [60 * second + 1, 1]
    ] as const) {
      const queue = new QueueHarness({ ...mode, maxPlayers: 2 })
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

  it("does not match a repeated ticket again while its match is pending", () => {
    const queue = new QueueHarness(mode)
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
    const queue = new QueueHarness(mode)
    queue.enqueue("a")
    queue.unwatch("n1")
    assert.strictEqual(queue.actor.waiting, 0)
    queue.watch("n1")
    assert.strictEqual(queue.actor.waiting, 1)
  })

  it("keeps the tickets of a node whose old stream ends after its new one began", () => {
    const queue = new QueueHarness(mode)
    const { n1 } = queue.gateways
    const old = n1.watcher
    n1.watcher = undefined
    queue.watch("n1")
    queue.enqueue("a")
    assert.isDefined(old)
    if (old !== undefined) queue.actor.detach("n1", old)
    assert.strictEqual(queue.actor.waiting, 1)
  })

  it("ends the streams of a matchmaking queue that moves, and sends nothing afterwards", () => {
    const queue = new QueueHarness(mode)
    for (const ticket of ["a", "b"]) queue.enqueue(ticket)
    queue.actor.activation.fence()
    assert.deepStrictEqual(queue.endedStreams, ["n1", "n2"])
    queue.seat()
    assert.strictEqual(queue.outcomes.size, 0)
  })

  it("drops tickets from a node that does not watch, because nothing would remove them", () => {
    const queue = new QueueHarness(mode)
    queue.enqueue("a")
    const { watcher } = queue.gateways.n1
    queue.unwatch("n1")
    queue.gateways.n1.watcher = watcher
    queue.enqueue("b")
    assert.strictEqual(queue.actor.waiting, 0)
  })

  it("cancels a waiting ticket, but not a matched one", () => {
    const queue = new QueueHarness(mode)
    queue.enqueue("a")
    queue.cancel("a")
    assert.strictEqual(queue.outcomes.get("a"), "cancelled")
    queue.enqueue("b")
    queue.enqueue("c")
    queue.seat()
    queue.cancel("b")
    assert.strictEqual(queue.gateways.n1.pendingCancels.size, 0)
    assert.strictEqual(queue.outcomes.get("b"), "r1")
  })

  it("replies to a repeated cancellation as to the first", () => {
    const queue = new QueueHarness(mode)
    queue.enqueue("a")
    const cancel = { t: "cancel", ticketId: "a" } as const
    const cancelled: Array<boolean> = []
    queue.actor.attach("n3", {
      send: (items) => {
        for (const item of items) if (item.kind === "cancelled") cancelled.push(item.cancelled)
      },
      end: () => undefined
    })
    for (const seq of [1, 1]) queue.actor.submit("n3", [{ seq, command: cancel }])
    assert.deepStrictEqual(cancelled, [true, true])
  })

  it("replies to the cancellation of a ticket in a pending match when the match completes", () => {
    const queue = new QueueHarness(mode)
    for (const ticket of ["a", "b"]) queue.enqueue(ticket)
    queue.cancel("a")
    assert.strictEqual(queue.gateways.n1.pendingCancels.size, 1)
    queue.refuse()
    assert.strictEqual(queue.outcomes.get("a"), "cancelled")
    assert.strictEqual(queue.actor.waiting, 1)
    queue.enqueue("c")
    queue.cancel("b")
    queue.seat()
    assert.strictEqual(queue.gateways.n1.pendingCancels.size, 0)
    assert.strictEqual(queue.outcomes.get("b"), "r1")
  })

  it("applies the mode settings of the newest ticket", () => {
    const queue = new QueueHarness({ ...mode, minPlayers: 3 })
    queue.enqueue("a")
    queue.enqueue("b")
    assert.deepStrictEqual(queue.matches, [])
    queue.mode = { ...mode, maxPlayers: 2 }
    queue.enqueue("c")
    assert.deepStrictEqual(queue.matches, [["a", "b"]])
  })

  it("refuses new tickets when the queue is full, but not repeated ones", () => {
    const queue = new QueueHarness(mode, false)
    const tickets = Array.from({ length: matchmaking.ticketsPerQueue }, (_, i) => `t${i}`)
    queue.enqueueAll(tickets)
    queue.enqueueAll(["t0"])
    assert.strictEqual(queue.outcomes.size, 0)
    queue.enqueue("late")
    assert.deepStrictEqual(Array.from(queue.outcomes), [["late", "full"]])
  })
})

describe("a matchmaking queue under random steps", () => {
  it("gives each ticket at most one seat and one outcome", () => {
    fc.assert(
      fc.property(queueModes, queueSteps, (settings, steps) => {
        const queue = new QueueHarness(settings, false)
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
        while (queue.listing || queue.pendingMatches.length > 0) {
          queue.found()
          queue.seat()
        }
        for (const [ticket, node] of owners) {
          const outcome = queue.outcomes.get(ticket)
          const waits = queue.gateways[node].tickets.has(ticket)
          assert.strictEqual(waits, outcome === undefined)
          assert.strictEqual(queue.seats.get(ticket), outcome === "cancelled" ? undefined : outcome)
        }
        assert.strictEqual(queue.actor.waiting, owners.size - queue.outcomes.size)
      }),
      { numRuns: 500 }
    )
  })
})
