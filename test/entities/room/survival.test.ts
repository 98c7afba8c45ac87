/** Rooms and their members when streams break, nodes stop and the room moves to another runner. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { isReachable, roomView } from "#entities/room/model"
import { snapshotDeadlineMillis } from "#entities/write-behind"
import * as generators from "../../support/generators.ts"
import type { NetworkStep, RoomStep } from "../../support/generators.ts"
import {
  ActorHarness,
  type Gateway,
  roomOfThree,
  seatedPlayers
} from "../../support/room-gateways.ts"
import { viewMatches, checkRoom } from "../../support/room-harness.ts"

const second = 1000

const version = (gateway: Gateway, player: string) => gateway.views.get(player)?.version

const write = (harness: ActorHarness, player: string, node: "n1" | "n2", round: number) =>
  harness.send(node, { t: "setState", playerId: player, patch: { round } })

describe("a reply", () => {
  const replies = (gateway: Gateway) =>
    gateway.outputs
      .map(({ kind }) => kind)
      .filter((k) => k === "reply" || k === "refuse" || k === "end")

  it("holds the reply to a leave until a snapshot without the seat is stored", () => {
    const harness = roomOfThree()
    harness.writes = false
    harness.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    write(harness, "ann", "n1", 1)
    assert.deepStrictEqual(replies(harness.gateways.n2), [])
    assert.deepStrictEqual(replies(harness.gateways.n1), ["reply"])
    harness.writes = true
    harness.save()
    assert.deepStrictEqual(replies(harness.gateways.n2), ["reply"])
  })

  it("holds the reply to a repeated leave until the same snapshot is stored", () => {
    const harness = roomOfThree()
    harness.writes = false
    harness.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    harness.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    assert.deepStrictEqual(replies(harness.gateways.n2), [])
    harness.writes = true
    harness.save()
    assert.deepStrictEqual(replies(harness.gateways.n2), ["reply", "refuse"])
  })

  it("holds a reply for the snapshot that contains its change, not an earlier one", () => {
    const harness = roomOfThree()
    harness.writes = false
    const changes = harness.actor.beginWrite()
    harness.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    harness.actor.commitWrite(changes)
    assert.deepStrictEqual(replies(harness.gateways.n2), [])
    harness.actor.commitWrite(harness.actor.beginWrite())
    assert.deepStrictEqual(replies(harness.gateways.n2), ["reply"])
  })

  it("holds the reply to the last leave, and the stream's end, until the row is removed", () => {
    const harness = new ActorHarness()
    harness.join("ann")
    const { n1 } = harness.gateways
    n1.outputs = []
    harness.writes = false
    harness.send("n1", { t: "leave", playerId: "ann", reason: "left" })
    assert.deepStrictEqual(replies(n1), [])
    harness.writes = true
    harness.save()
    assert.deepStrictEqual(replies(n1), ["reply", "end"])
  })

  it("replies without waiting for a snapshot on a single node", () => {
    const harness = new ActorHarness({}, false)
    harness.join("ann", "n1")
    harness.join("ben", "n2")
    const { n2 } = harness.gateways
    n2.outputs = []
    harness.writes = false
    harness.wait(snapshotDeadlineMillis + 1)
    write(harness, "ben", "n2", 1)
    harness.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    assert.deepStrictEqual(replies(n2), ["reply", "reply"])
  })

  it("withholds a reply, but not its event, while a snapshot is over a second late", () => {
    const harness = roomOfThree()
    harness.save()
    harness.writes = false
    write(harness, "ann", "n1", 1)
    harness.wait(snapshotDeadlineMillis)
    write(harness, "ann", "n1", 2)
    assert.deepStrictEqual(replies(harness.gateways.n1), ["reply", "reply"])
    harness.wait(1)
    write(harness, "ann", "n1", 3)
    assert.strictEqual(version(harness.gateways.n1, "ann"), 3)
    assert.deepStrictEqual(replies(harness.gateways.n1), ["reply", "reply"])
    harness.writes = true
    harness.save()
    assert.deepStrictEqual(replies(harness.gateways.n1), ["reply", "reply", "reply"])
  })
})

describe("a node that stops watching", () => {
  it("disconnects the members of a node that stops watching after five seconds", () => {
    const harness = roomOfThree()
    harness.unwatch("n2")
    harness.wait(5 * second - 1)
    harness.actor.tick()
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), [])
    harness.wait(1)
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), ["player_disconnected"])
  })

  it("lets a node watch again before the room detects the end of its old stream", () => {
    const harness = roomOfThree()
    const { n2 } = harness.gateways
    const old = n2.watcher
    n2.watcher = undefined
    harness.drop("ben")
    harness.watch("n2")
    assert.isDefined(old)
    if (old !== undefined) harness.actor.activation.detach("n2", old)
    harness.join("ben", "n2")
    assert.strictEqual(n2.kinds("ben").at(-1), "room_joined")
    harness.wait(60 * second)
    assert.include(seatedPlayers(harness), "ben")
  })

  it("sends a node that watches again a new snapshot, and keeps its members", () => {
    const harness = roomOfThree()
    harness.unwatch("n2")
    write(harness, "ann", "n1", 1)
    harness.wait(5 * second - 1)
    harness.watch("n2")
    assert.deepStrictEqual(harness.gateways.n2.kinds("ben"), ["room_joined"])
    assert.strictEqual(version(harness.gateways.n2, "ben"), 1)
    harness.wait(60 * second)
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), ["state"])
  })

  it("reconnects the members of a node that watches again within their grace period", () => {
    const harness = roomOfThree()
    harness.unwatch("n2")
    harness.wait(20 * second)
    harness.watch("n2")
    harness.wait(60 * second)
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), [
      "player_disconnected",
      "player_reconnected"
    ])
    assert.include(seatedPlayers(harness), "ben")
  })

  it("disconnects the members that a node lost while it did not watch", () => {
    const harness = roomOfThree()
    harness.unwatch("n1")
    harness.gateways.n1.members.delete("cat")
    harness.watch("n1")
    assert.deepStrictEqual(harness.gateways.n2.kinds("ben"), ["player_disconnected"])
  })

  it("keeps no seat for a matched player who never joins", () => {
    const harness = roomOfThree()
    harness.actor.seat([harness.joiningPlayer("dan", "n2")])
    harness.unwatch("n2")
    harness.watch("n2")
    harness.wait(10 * second - 1)
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), ["player_joined"])
    harness.wait(31 * second)
    assert.notInclude(seatedPlayers(harness), "dan")
  })

  it.for(["join", "resume"] as const)("ignores the late %s of an older connection", (t) => {
    const harness = roomOfThree()
    harness.unwatch("n2")
    harness.join("ben", "n2", t)
    harness.drop("ben", true)
    harness.join("ben", "n1")
    harness.watch("n2")
    harness.wait(60 * second)
    assert.isTrue(harness.gateways.n1.members.has("ben"))
    assert.strictEqual(harness.actor.state?.members.get("ben")?.attachment?.node, "n1")
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), [])
  })

  it("keeps a newer connection when a node still holds an older one", () => {
    const harness = roomOfThree()
    harness.unwatch("n2")
    harness.join("ben", "n1")
    harness.watch("n2")
    assert.strictEqual(harness.actor.state?.members.get("ben")?.attachment?.node, "n1")
    assert.deepStrictEqual(harness.gateways.n1.kinds("ben"), ["room_joined"])
    harness.gateways.n2.members.delete("ben")
    harness.wait(60 * second)
    assert.include(seatedPlayers(harness), "ben")
  })

  it("leaves no seat behind for a player that a node adds after it stopped watching", () => {
    const harness = roomOfThree()
    harness.unwatch("n2")
    harness.wait(5 * second)
    const late = { t: "join", ...harness.joiningPlayer("dan", "n2") } as const
    harness.actor.submit("n2", [{ seq: 1, command: late }])
    harness.wait(5 * second + 30 * second)
    assert.notInclude(seatedPlayers(harness), "dan")
  })
})

describe("a room that moved", () => {
  const moveRoom = (harness: ActorHarness, stale: number, ...nodes: ReadonlyArray<"n1" | "n2">) => {
    harness.move(stale)
    for (const node of nodes) harness.watch(node)
  }

  it("sends every member a new snapshot as the first event after the room moved", () => {
    const harness = roomOfThree()
    write(harness, "ann", "n1", 1)
    for (const gateway of harness.allGateways) gateway.frames.length = 0
    moveRoom(harness, 0, "n2", "n1")
    for (const [gateway, player] of [
      [harness.gateways.n1, "ann"],
      [harness.gateways.n1, "cat"],
      [harness.gateways.n2, "ben"]
    ] as const) {
      assert.deepStrictEqual(gateway.kinds(player), ["room_joined"])
      assert.deepInclude(gateway.frames[0]?.event, { resumed: true })
      assert.strictEqual(version(gateway, player), 1)
    }
    harness.wait(60 * second)
    assert.deepStrictEqual(seatedPlayers(harness), ["ann", "ben", "cat"])
  })

  it("keeps connections when a node first attaches with an outdated, empty member list", () => {
    const harness = roomOfThree()
    moveRoom(harness, 0, "n1")
    harness.actor.attach("n2", { send: () => undefined, end: () => undefined }, 0, [])
    harness.watch("n2")
    harness.wait(60 * second)
    assert.deepStrictEqual(harness.gateways.n2.kinds("ben"), ["room_joined"])
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), ["room_joined"])
  })

  it("seats attached players again whom the snapshot of a moved room does not contain", () => {
    const harness = roomOfThree()
    harness.join("dan", "n2")
    moveRoom(harness, 1, "n1", "n2")
    assert.deepStrictEqual(seatedPlayers(harness), ["ann", "ben", "cat", "dan"])
    assert.strictEqual(harness.gateways.n1.kinds("ann").at(-1), "player_joined")
  })

  it("sends `room_closed` with the reason `lost` to a member without a free seat", () => {
    const harness = roomOfThree({ maxPlayers: 3 })
    harness.send("n1", { t: "leave", playerId: "cat", reason: "left" })
    harness.join("dan", "n2")
    moveRoom(harness, 2, "n2", "n1")
    const frames = harness.gateways.n2.frames.filter(({ player }) => player === "dan")
    const lost = { t: "room_closed", roomId: "rm_1", reason: "lost" } as const
    assert.deepStrictEqual(frames.at(-1)?.event, lost)
    assert.isFalse(harness.gateways.n2.members.has("dan"))
  })

  it("keeps the grace periods of disconnected members when the room moves", () => {
    const harness = roomOfThree()
    for (const player of ["ann", "ben", "cat"]) harness.drop(player)
    moveRoom(harness, 0)
    harness.wait(30 * second)
    assert.strictEqual(harness.closed, "empty")
  })

  it("starts the grace period of members whose node does not attach again", () => {
    const harness = roomOfThree()
    moveRoom(harness, 0, "n1")
    harness.wait(5 * second)
    assert.strictEqual(harness.gateways.n1.kinds("ann").at(-1), "player_disconnected")
    harness.wait(30 * second)
    assert.deepStrictEqual(seatedPlayers(harness), ["ann", "cat"])
  })

  it("leaves a fenced activation that sends nothing and ignores commands", () => {
    const harness = roomOfThree()
    const old = harness.actor
    const before = old.state
    harness.move(0)
    for (const gateway of harness.allGateways) gateway.outputs = []
    old.submit("n1", [{ seq: 1, command: { t: "setState", playerId: "ann", patch: { a: 1 } } }])
    old.close("idle")
    harness.wait(24 * 3600 * second)
    old.tick()
    let ended = false
    const watcher = {
      send: () => assert.fail("a fenced room sent an output"),
      end: () => {
        ended = true
      }
    }
    old.attach("n1", watcher, 1, harness.gateways.n1.present)
    assert.isTrue(ended)
    assert.strictEqual(old.state, before)
  })
})

const asNode = (node: string) => (node === "n2" ? "n2" : "n1")

/** Sends the command of a step from the gateways where its player is a member. */
const sendStep = (harness: ActorHarness, step: RoomStep): void => {
  for (const gateway of harness.allGateways) {
    if (!("player" in step) || !gateway.members.has(step.player)) continue
    const node = asNode(gateway.node)
    const { player: playerId } = step
    if (step.kind === "send") {
      const command = { t: "send", playerId, type: "x" } as const
      harness.send(node, step.to === null ? command : { ...command, to: step.to })
    } else if (step.kind === "setState" || step.kind === "setMyState") {
      harness.send(node, { t: step.kind, playerId, patch: step.patch })
    } else if (step.kind === "lock") {
      harness.send(node, { t: "lock", playerId, locked: step.locked })
    } else if (step.kind === "leave") {
      harness.send(node, { t: "leave", playerId, reason: step.reason })
    }
  }
}

const perform = (harness: ActorHarness, step: RoomStep | NetworkStep): void => {
  switch (step.kind) {
    case "join":
    case "resume":
      harness.drop(step.player, true)
      return harness.join(step.player, asNode(step.node), step.kind)
    case "seat":
      harness.actor.seat(step.players.map((id) => harness.joiningPlayer(id, asNode(step.node))))
      return
    case "rename":
      return harness.actor.renamePlayer(step.player, step.displayName)
    case "drop":
      return harness.drop(step.player, step.replaced)
    case "watch":
      return harness.watch(asNode(step.node))
    case "unwatch":
      return harness.unwatch(asNode(step.node))
    case "move":
      return harness.move(step.stale)
    case "wait":
      return harness.wait(step.millis)
    default:
      return sendStep(harness, step)
  }
}

/** Asserts that each watching gateway, its members and the room agree. */
const check = (harness: ActorHarness): void => {
  const { state } = harness.actor
  if (state === undefined) return
  checkRoom(state, harness.now, false)
  assert.sameMembers(Array.from(harness.indexed), Array.from(state.members.keys()), "reported")
  for (const gateway of harness.allGateways) {
    if (gateway.watcher === undefined) continue
    assert.strictEqual(gateway.pendingReplies.size, 0)
    const local = Array.from(state.members.values()).filter(
      (member) => isReachable(member) && member.attachment?.node === gateway.node
    )
    assert.sameMembers(
      local.map(({ id }) => id),
      Array.from(gateway.members.keys())
    )
    for (const { attachment, id } of local) {
      assert.strictEqual(gateway.members.get(id), attachment?.connectionId)
      const view = gateway.views.get(id)
      if (view === undefined || !viewMatches(view, state)) {
        assert.deepStrictEqual(view, roomView(state), id)
      }
    }
  }
}

describe("a room and its gateways under random steps", () => {
  it("a room and its gateways agree about members and state under random steps", () => {
    fc.assert(
      fc.property(generators.roomSettings, generators.roomNetworkSteps, (settings, steps) => {
        const harness = new ActorHarness(settings)
        harness.join("ann")
        for (const step of steps) {
          perform(harness, step)
          if (harness.closed !== undefined) {
            assert.isEmpty(harness.indexed)
            for (const gateway of harness.allGateways) {
              assert.strictEqual(gateway.over, gateway.watcher !== undefined)
            }
            return
          }
          check(harness)
        }
      }),
      { numRuns: 300 }
    )
  })
})
