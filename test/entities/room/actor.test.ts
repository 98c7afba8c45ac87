/**
 * A live room among its gateways: the order of events, their receivers, and replies. See
 * `room-gateways.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { RoomOutput } from "#entities/room/messages"
import { decide } from "#entities/room/state"
import { ActorWorld, type Gateway, meeting, seats } from "../../support/room-gateways.ts"
import { emptyRoom } from "../../support/room-harness.ts"

const second = 1000

const kinds = (items: ReadonlyArray<RoomOutput>) => items.map(({ kind }) => kind)

const write = (world: ActorWorld, player: string, node: "n1" | "n2", round: number) =>
  world.send(node, { t: "setState", playerId: player, patch: { round } })

describe("a live room", () => {
  it("sends every node the same events in the same order", () => {
    const world = meeting()
    for (let round = 1; round <= 5; round++) {
      write(world, "ann", "n1", round)
      world.send("n2", { t: "send", playerId: "ben", type: "move", to: ["ann", "ben"] })
    }
    const eventsOf = (gateway: Gateway) => gateway.items.filter(({ kind }) => kind === "event")
    assert.lengthOf(eventsOf(world.gateways.n1), 10)
    assert.deepStrictEqual(eventsOf(world.gateways.n1), eventsOf(world.gateways.n2))
  })

  it("answers in order, after the events of the command, on the sender's node only", () => {
    const world = meeting()
    write(world, "ann", "n1", 1)
    world.send("n1", { t: "lock", playerId: "cat", locked: true })
    assert.deepStrictEqual(kinds(world.gateways.n1.items), ["event", "reply", "refuse"])
    assert.deepStrictEqual(kinds(world.gateways.n2.items), ["event"])
    assert.include(world.gateways.n1.items[2], { player: "cat" })
  })

  it("gives a joiningPlayer the room before the reply, on its own node only", () => {
    const world = meeting()
    world.join("dan", "n2")
    assert.deepStrictEqual(kinds(world.gateways.n1.items), ["event"])
    assert.deepStrictEqual(kinds(world.gateways.n2.items), ["event", "enter", "reply"])
  })

  it("lets a member out on its own node only", () => {
    const world = meeting()
    world.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    assert.deepStrictEqual(kinds(world.gateways.n1.items), ["event"])
    assert.deepStrictEqual(kinds(world.gateways.n2.items), ["event", "exit", "reply"])
    assert.isFalse(world.gateways.n2.members.has("ben"))
  })

  it("speaks to named members through their nodes only", () => {
    const world = meeting()
    world.send("n1", { t: "send", playerId: "ann", type: "hint", to: ["cat"] })
    assert.deepStrictEqual(kinds(world.gateways.n2.items), [])
    assert.deepStrictEqual(world.gateways.n1.kinds("cat"), ["message"])
  })

  it("takes a command without an answer silently, and says so when it refuses", () => {
    const world = meeting()
    const { n1 } = world.gateways
    n1.command({ t: "setState", playerId: "ann", patch: { a: 1 } })
    n1.command({ t: "lock", playerId: "cat", locked: true })
    world.flush()
    assert.deepStrictEqual(kinds(n1.items), ["event", "refuse"])
    assert.include(n1.items[1], { seq: 0, player: "cat" })
  })

  it("keeps its members' time", () => {
    const world = meeting()
    world.drop("ben")
    world.wait(30 * second - 1)
    assert.include(seats(world), "ben")
    world.wait(1)
    assert.notInclude(seats(world), "ben")
  })

  it("seats a player at the node that asks, whatever the command says", () => {
    const world = meeting()
    const dan = { ...world.joiningPlayer("dan", "n2"), node: "n1" }
    world.send("n2", { t: "join", ...dan })
    assert.isTrue(world.gateways.n2.members.has("dan"))
  })

  it("gives those it opens with the time to come in, and no more", () => {
    const world = new ActorWorld()
    const state = emptyRoom()
    const joiningPlayers = [world.joiningPlayer("ann", "n1"), world.joiningPlayer("ben", "n2")]
    const seated = Result.getOrThrow(decide(state, { t: "seat", joiningPlayers }, world.now)).state
    for (const node of ["n1", "n2"] as const) world.unwatch(node)
    world.restart(seated)
    world.watch("n1")
    world.wait(5 * second - 1)
    assert.isNotNull(world.actor.state?.members.get("ben")?.attachment)
    world.wait(1)
    assert.isNull(world.actor.state?.members.get("ben")?.attachment)
    assert.isNotNull(world.actor.state?.members.get("ann")?.attachment)
  })

  it("answers the last leave, and only then ends", () => {
    const world = new ActorWorld()
    world.join("ann")
    world.gateways.n1.items = []
    world.send("n1", { t: "leave", playerId: "ann", reason: "left" })
    assert.deepStrictEqual(kinds(world.gateways.n1.items), ["event", "exit", "reply", "end"])
    assert.deepStrictEqual(kinds(world.gateways.n2.items).at(-1), "end")
    assert.strictEqual(world.closed, "empty")
  })

  it("answers room_not_found to what comes after its end", () => {
    const world = new ActorWorld()
    world.join("ann")
    const { n1 } = world.gateways
    n1.command({ t: "leave", playerId: "ann", reason: "left" }, 100)
    n1.command({ t: "setState", playerId: "ann", patch: {} }, 101)
    world.flush()
    const refused = n1.items.find((item) => item.kind === "refuse")
    assert.include(refused?.error, { code: "room_not_found" })
    assert.isTrue(Result.isFailure(world.actor.seat([world.joiningPlayer("ben", "n2")])))
  })

  it("sends its members the reason of its end", () => {
    const world = meeting()
    world.actor.close("feature_disabled")
    for (const gateway of world.all) assert.isTrue(gateway.over)
    assert.deepStrictEqual(world.gateways.n2.kinds("ben"), ["room_closed"])
    assert.strictEqual(world.closed, "feature_disabled")
  })

  it("names all who have a seat when matchmaking asks, and only new ones are news", () => {
    const world = meeting({ maxPlayers: 4 })
    const joiningPlayers = ["ann", "dan", "eve"].map((player) => world.joiningPlayer(player, "n2"))
    assert.deepStrictEqual(world.actor.seat(joiningPlayers), Result.succeed(["ann", "dan"]))
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), ["player_joined"])
  })
})
