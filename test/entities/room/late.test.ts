/**
 * Late and duplicate commands, attachments and tickets at a room or a queue. The simulated cluster
 * (`simulation.test.ts`) found each of these cases.
 */
import { assert, describe, it } from "@effect/vitest"
import { QueueHarness } from "../../support/queue-harness.ts"
import { roomOfThree, seatedPlayers } from "../../support/room-gateways.ts"
import { connectionOf, roomOf } from "../../support/room-harness.ts"

const second = 1000

describe("late and duplicate input", () => {
  it("a leave from a replaced connection does not free the seat", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ben", true)
    room.resume("ben")
    const leave = { t: "leave", playerId: "ben", reason: "left" } as const
    assert.strictEqual(room.refusal({ ...leave, connectionId: connectionOf(1) }), "not_in_room")
    assert.strictEqual(room.refusal({ ...leave, connectionId: connectionOf(99) }), "granted")
  })

  it("a message through a node that the member has left is not delivered", () => {
    const harness = roomOfThree()
    harness.unwatch("n2")
    harness.join("ben", "n1")
    harness.watch("n2")
    harness.gateways.n1.frames.length = 0
    harness.send("n2", { t: "send", playerId: "ben", type: "x" })
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), [])
  })

  it("a room refuses a duplicate or older attachment of a node", () => {
    const { actor } = roomOfThree()
    assert.isTrue(actor.watchers.admit("n3", 7))
    assert.isFalse(actor.watchers.admit("n3", 7))
    assert.isTrue(actor.watchers.admit("n3", 8))
    assert.isFalse(actor.watchers.admit("n3", 7))
  })

  it("a member that its node does not know any more loses its seat after the grace period", () => {
    const harness = roomOfThree()
    harness.unwatch("n2")
    const { n2 } = harness.gateways
    n2.members.clear()
    n2.views.clear()
    n2.epoch = 0
    harness.watch("n2")
    assert.include(seatedPlayers(harness), "ben")
    harness.wait(10 * second)
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), ["player_disconnected"])
    harness.wait(30 * second)
    assert.notInclude(seatedPlayers(harness), "ben")
  })

  it("a duplicate call does not enqueue a cancelled ticket again", () => {
    const queue = new QueueHarness({ minPlayers: 2, maxPlayers: 2, fillTimeoutSeconds: 0 })
    queue.enqueue("a")
    queue.cancel("a")
    queue.enqueue("a")
    assert.strictEqual(queue.actor.waiting, 0)
  })
})
