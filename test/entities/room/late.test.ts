/**
 * What reaches a room or a queue too late: commands, attachments and tickets of a time that is over.
 * The simulated cluster (`simulation.test.ts`) has found each of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { QueueWorld } from "../../support/queue-harness.ts"
import { meeting, seats } from "../../support/room-gateways.ts"
import { connectionOf, roomOf } from "../../support/room-harness.ts"

const second = 1000

describe("what comes too late", () => {
  it("a leave of a connection that was replaced gives nothing up", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ben", true)
    room.resume("ben")
    const leave = { t: "leave", playerId: "ben", reason: "left" } as const
    assert.strictEqual(room.refusal({ ...leave, connectionId: connectionOf(1) }), "not_in_room")
    assert.strictEqual(room.refusal({ ...leave, connectionId: connectionOf(99) }), "granted")
  })

  it("what a member said through the node it has left since is not heard", () => {
    const world = meeting()
    world.unwatch("n2")
    world.join("ben", "n1")
    world.watch("n2")
    world.gateways.n1.frames.length = 0
    world.send("n2", { t: "send", playerId: "ben", type: "x" })
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), [])
  })

  it("an attachment that is sent twice is not the node's of now", () => {
    const { actor } = meeting()
    assert.isTrue(actor.watchers.admit("n3", 7))
    assert.isFalse(actor.watchers.admit("n3", 7))
    assert.isTrue(actor.watchers.admit("n3", 8))
    assert.isFalse(actor.watchers.admit("n3", 7))
  })

  it("members that a node knows nothing of lose their seats", () => {
    const world = meeting()
    world.unwatch("n2")
    const { n2 } = world.gateways
    n2.members.clear()
    n2.views.clear()
    n2.epoch = 0
    world.watch("n2")
    assert.include(seats(world), "ben")
    world.wait(10 * second)
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), ["player_disconnected"])
    world.wait(30 * second)
    assert.notInclude(seats(world), "ben")
  })

  it("a ticket that was cancelled is not brought back by a call that is sent twice", () => {
    const queue = new QueueWorld({ minPlayers: 2, maxPlayers: 2, fillTimeoutSeconds: 0 })
    queue.enqueue("a")
    queue.cancel("a")
    queue.enqueue("a")
    assert.strictEqual(queue.actor.waiting, 0)
  })
})
