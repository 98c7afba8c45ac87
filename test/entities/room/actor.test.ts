/**
 * A live room among its gateways: the order of events, their receivers, and replies. See
 * `room-gateways.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { RoomOutput } from "#entities/room/messages"
import { decide } from "#entities/room/state"
import {
  ActorHarness,
  type Gateway,
  roomOfThree,
  seatedPlayers
} from "../../support/room-gateways.ts"
import { emptyRoom } from "../../support/room-harness.ts"

const second = 1000

const kinds = (items: ReadonlyArray<RoomOutput>) => items.map(({ kind }) => kind)

const write = (harness: ActorHarness, player: string, node: "n1" | "n2", round: number) =>
  harness.send(node, { t: "setState", playerId: player, patch: { round } })

describe("a live room", () => {
  it("sends every node the same events in the same order", () => {
    const harness = roomOfThree()
    for (let round = 1; round <= 5; round++) {
      write(harness, "ann", "n1", round)
      harness.send("n2", { t: "send", playerId: "ben", type: "move", to: ["ann", "ben"] })
    }
    const eventsOf = (gateway: Gateway) => gateway.outputs.filter(({ kind }) => kind === "event")
    assert.lengthOf(eventsOf(harness.gateways.n1), 10)
    assert.deepStrictEqual(eventsOf(harness.gateways.n1), eventsOf(harness.gateways.n2))
  })

  it("replies in order, after the events of the command, on the sender's node only", () => {
    const harness = roomOfThree()
    write(harness, "ann", "n1", 1)
    harness.send("n1", { t: "lock", playerId: "cat", locked: true })
    assert.deepStrictEqual(kinds(harness.gateways.n1.outputs), ["event", "reply", "refuse"])
    assert.deepStrictEqual(kinds(harness.gateways.n2.outputs), ["event"])
    assert.include(harness.gateways.n1.outputs[2], { player: "cat" })
  })

  it("sends a joining player the room before the reply, on its own node only", () => {
    const harness = roomOfThree()
    harness.join("dan", "n2")
    assert.deepStrictEqual(kinds(harness.gateways.n1.outputs), ["event"])
    assert.deepStrictEqual(kinds(harness.gateways.n2.outputs), ["event", "enter", "reply"])
  })

  it("removes a member from its own node only", () => {
    const harness = roomOfThree()
    harness.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    assert.deepStrictEqual(kinds(harness.gateways.n1.outputs), ["event"])
    assert.deepStrictEqual(kinds(harness.gateways.n2.outputs), ["event", "exit", "reply"])
    assert.isFalse(harness.gateways.n2.members.has("ben"))
  })

  it("notifies a banned player on its own node, which then stops to receive for it", () => {
    const harness = roomOfThree()
    harness.actor.removePlayer("ben", "banned")
    const { n1, n2 } = harness.gateways
    assert.deepStrictEqual(kinds(n2.outputs), ["event", "event", "exit"])
    assert.deepStrictEqual(n2.kinds("ben"), ["player_left"])
    assert.deepStrictEqual(kinds(n1.outputs), ["event"])
    assert.deepStrictEqual([n1.kinds("ann"), n1.kinds("cat")], [["player_left"], ["player_left"]])
  })

  it("sends a message with `to` only to the nodes of the named members", () => {
    const harness = roomOfThree()
    harness.send("n1", { t: "send", playerId: "ann", type: "hint", to: ["cat"] })
    assert.deepStrictEqual(kinds(harness.gateways.n2.outputs), [])
    assert.deepStrictEqual(harness.gateways.n1.kinds("cat"), ["message"])
  })

  it("replies to a command without a sequence number only when it refuses it", () => {
    const harness = roomOfThree()
    const { n1 } = harness.gateways
    n1.command({ t: "setState", playerId: "ann", patch: { a: 1 } })
    n1.command({ t: "lock", playerId: "cat", locked: true })
    harness.flush()
    assert.deepStrictEqual(kinds(n1.outputs), ["event", "refuse"])
    assert.include(n1.outputs[1], { seq: 0, player: "cat" })
  })

  it("removes a disconnected member when the grace period ends", () => {
    const harness = roomOfThree()
    harness.drop("ben")
    harness.wait(30 * second - 1)
    assert.include(seatedPlayers(harness), "ben")
    harness.wait(1)
    assert.notInclude(seatedPlayers(harness), "ben")
  })

  it("seats a player at the node that sent the join, not at the node in the command", () => {
    const harness = roomOfThree()
    const dan = { ...harness.joiningPlayer("dan", "n2"), node: "n1" }
    harness.send("n2", { t: "join", ...dan })
    assert.isTrue(harness.gateways.n2.members.has("dan"))
  })

  it("disconnects the first members of a room when their node does not attach within five seconds", () => {
    const harness = new ActorHarness()
    const state = emptyRoom()
    const joiningPlayers = [harness.joiningPlayer("ann", "n1"), harness.joiningPlayer("ben", "n2")]
    const seated = Result.getOrThrow(
      decide(state, { t: "seat", joiningPlayers }, harness.now)
    ).state
    for (const node of ["n1", "n2"] as const) harness.unwatch(node)
    harness.restart(seated)
    harness.watch("n1")
    harness.wait(5 * second - 1)
    assert.isNotNull(harness.actor.state?.members.get("ben")?.attachment)
    harness.wait(1)
    assert.isNull(harness.actor.state?.members.get("ben")?.attachment)
    assert.isNotNull(harness.actor.state?.members.get("ann")?.attachment)
  })

  it("replies to the last leave before the room ends", () => {
    const harness = new ActorHarness()
    harness.join("ann")
    harness.gateways.n1.outputs = []
    harness.send("n1", { t: "leave", playerId: "ann", reason: "left" })
    assert.deepStrictEqual(kinds(harness.gateways.n1.outputs), ["event", "exit", "reply", "end"])
    assert.deepStrictEqual(kinds(harness.gateways.n2.outputs).at(-1), "end")
    assert.strictEqual(harness.closed, "empty")
  })

  it("refuses commands after the end of a room with `room_not_found`", () => {
    const harness = new ActorHarness()
    harness.join("ann")
    const { n1 } = harness.gateways
    n1.command({ t: "leave", playerId: "ann", reason: "left" }, 100)
    n1.command({ t: "setState", playerId: "ann", patch: {} }, 101)
    harness.flush()
    const refused = n1.outputs.find((item) => item.kind === "refuse")
    assert.include(refused?.error, { code: "room_not_found" })
    assert.isTrue(Result.isFailure(harness.actor.seat([harness.joiningPlayer("ben", "n2")])))
  })

  it("sends the members of a room the reason when it closes", () => {
    const harness = roomOfThree()
    harness.actor.close("feature_disabled")
    for (const gateway of harness.allGateways) assert.isTrue(gateway.over)
    assert.deepStrictEqual(harness.gateways.n2.kinds("ben"), ["room_closed"])
    assert.strictEqual(harness.closed, "feature_disabled")
  })

  it("returns all seated players to matchmaking, and announces only new ones", () => {
    const harness = roomOfThree({ maxPlayers: 4 })
    const joiningPlayers = ["ann", "dan", "eve"].map((player) =>
      harness.joiningPlayer(player, "n2")
    )
    assert.deepStrictEqual(harness.actor.seat(joiningPlayers), Result.succeed(["ann", "dan"]))
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), ["player_joined"])
  })
})
