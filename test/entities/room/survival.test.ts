/** Rooms and their members when streams break, nodes stop and the room moves to another runner. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { rooms } from "#rpc/limits"
import { isReachable, roomView } from "#entities/room/model"
import * as generators from "../../support/generators.ts"
import type { JourneyStep, RoomStep } from "../../support/generators.ts"
import { ActorWorld, type Gateway, meeting, seats } from "../../support/room-gateways.ts"
import { agrees, checkRoom } from "../../support/room-harness.ts"

const second = 1000

const version = (gateway: Gateway, player: string) => gateway.views.get(player)?.version

const write = (world: ActorWorld, player: string, node: "n1" | "n2", round: number) =>
  world.send(node, { t: "setState", playerId: player, patch: { round } })

describe("an answer", () => {
  const answers = (gateway: Gateway) =>
    gateway.items
      .map(({ kind }) => kind)
      .filter((k) => k === "reply" || k === "refuse" || k === "end")

  it("to a leave waits until no snapshot knows the seat", () => {
    const world = meeting()
    world.writes = false
    world.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    write(world, "ann", "n1", 1)
    assert.deepStrictEqual(answers(world.gateways.n2), [])
    assert.deepStrictEqual(answers(world.gateways.n1), ["reply"])
    world.writes = true
    world.save()
    assert.deepStrictEqual(answers(world.gateways.n2), ["reply"])
  })

  it("to a leave that is asked again waits as well", () => {
    const world = meeting()
    world.writes = false
    world.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    world.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    assert.deepStrictEqual(answers(world.gateways.n2), [])
    world.writes = true
    world.save()
    assert.deepStrictEqual(answers(world.gateways.n2), ["reply", "refuse"])
  })

  it("waits for the snapshot that has its change, not for one under way", () => {
    const world = meeting()
    world.writes = false
    const changes = world.actor.beginWrite()
    world.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    world.actor.commitWrite(changes)
    assert.deepStrictEqual(answers(world.gateways.n2), [])
    world.actor.commitWrite(world.actor.beginWrite())
    assert.deepStrictEqual(answers(world.gateways.n2), ["reply"])
  })

  it("to the last leave waits until the room is removed, and its end with it", () => {
    const world = new ActorWorld()
    world.join("ann")
    const { n1 } = world.gateways
    n1.items = []
    world.writes = false
    world.send("n1", { t: "leave", playerId: "ann", reason: "left" })
    assert.deepStrictEqual(answers(n1), [])
    world.writes = true
    world.save()
    assert.deepStrictEqual(answers(n1), ["reply", "end"])
  })

  it("waits for no snapshot where the room can wake nowhere else", () => {
    const world = new ActorWorld({}, false)
    world.join("ann", "n1")
    world.join("ben", "n2")
    const { n2 } = world.gateways
    n2.items = []
    world.writes = false
    world.wait(rooms.snapshotDeadlineMillis + 1)
    write(world, "ben", "n2", 1)
    world.send("n2", { t: "leave", playerId: "ben", reason: "left" })
    assert.deepStrictEqual(answers(n2), ["reply", "reply"])
  })

  it("is withheld while an older change waits too long to be written, though its event is sent", () => {
    const world = meeting()
    world.save()
    world.writes = false
    write(world, "ann", "n1", 1)
    world.wait(rooms.snapshotDeadlineMillis)
    write(world, "ann", "n1", 2)
    assert.deepStrictEqual(answers(world.gateways.n1), ["reply", "reply"])
    world.wait(1)
    write(world, "ann", "n1", 3)
    assert.strictEqual(version(world.gateways.n1, "ann"), 3)
    assert.deepStrictEqual(answers(world.gateways.n1), ["reply", "reply"])
    world.writes = true
    world.save()
    assert.deepStrictEqual(answers(world.gateways.n1), ["reply", "reply", "reply"])
  })
})

describe("a node that stops watching", () => {
  it("loses its members' connections after five seconds", () => {
    const world = meeting()
    world.unwatch("n2")
    world.wait(5 * second - 1)
    world.actor.tick()
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), [])
    world.wait(1)
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), ["player_disconnected"])
  })

  it("may begin again before the end of its old stream is noticed", () => {
    const world = meeting()
    const { n2 } = world.gateways
    const old = n2.watcher
    n2.watcher = undefined
    world.drop("ben")
    world.watch("n2")
    assert.isDefined(old)
    if (old !== undefined) world.actor.detach("n2", old)
    world.join("ben", "n2")
    assert.strictEqual(n2.kinds("ben").at(-1), "room_joined")
    world.wait(60 * second)
    assert.include(seats(world), "ben")
  })

  it("gets a new snapshot when it watches again, and its members lose nothing", () => {
    const world = meeting()
    world.unwatch("n2")
    write(world, "ann", "n1", 1)
    world.wait(5 * second - 1)
    world.watch("n2")
    assert.deepStrictEqual(world.gateways.n2.kinds("ben"), ["room_joined"])
    assert.strictEqual(version(world.gateways.n2, "ben"), 1)
    world.wait(60 * second)
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), ["state"])
  })

  it("brings its members back from their grace", () => {
    const world = meeting()
    world.unwatch("n2")
    world.wait(20 * second)
    world.watch("n2")
    world.wait(60 * second)
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), [
      "player_disconnected",
      "player_reconnected"
    ])
    assert.include(seats(world), "ben")
  })

  it("takes those it lost meanwhile out of their seats' connections", () => {
    const world = meeting()
    world.unwatch("n1")
    world.gateways.n1.members.delete("cat")
    world.watch("n1")
    assert.deepStrictEqual(world.gateways.n2.kinds("ben"), ["player_disconnected"])
  })

  it("does not keep a seat of a player it never brings in", () => {
    const world = meeting()
    world.actor.seat([world.joiningPlayer("dan", "n2")])
    world.unwatch("n2")
    world.watch("n2")
    world.wait(10 * second - 1)
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), ["player_joined"])
    world.wait(31 * second)
    assert.notInclude(seats(world), "dan")
  })

  it.for(["join", "resume"] as const)("has no say with the late %s of an older connection", (t) => {
    const world = meeting()
    world.unwatch("n2")
    world.join("ben", "n2", t)
    world.drop("ben", true)
    world.join("ben", "n1")
    world.watch("n2")
    world.wait(60 * second)
    assert.isTrue(world.gateways.n1.members.has("ben"))
    assert.strictEqual(world.actor.state?.members.get("ben")?.attachment?.node, "n1")
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), [])
  })

  it("has no say with an older connection that it still holds", () => {
    const world = meeting()
    world.unwatch("n2")
    world.join("ben", "n1")
    world.watch("n2")
    assert.strictEqual(world.actor.state?.members.get("ben")?.attachment?.node, "n1")
    assert.deepStrictEqual(world.gateways.n1.kinds("ben"), ["room_joined"])
    world.gateways.n2.members.delete("ben")
    world.wait(60 * second)
    assert.include(seats(world), "ben")
  })

  it("cannot leave a connection behind that nobody answers for", () => {
    const world = meeting()
    world.unwatch("n2")
    world.wait(5 * second)
    const late = { t: "join", ...world.joiningPlayer("dan", "n2") } as const
    world.actor.submit("n2", [{ seq: 1, command: late }])
    world.wait(5 * second + 30 * second)
    assert.notInclude(seats(world), "dan")
  })
})

describe("a room that moved", () => {
  const moved = (world: ActorWorld, stale: number, ...nodes: ReadonlyArray<"n1" | "n2">) => {
    world.move(stale)
    for (const node of nodes) world.watch(node)
  }

  it("sends every member a new snapshot, and nothing before it", () => {
    const world = meeting()
    write(world, "ann", "n1", 1)
    for (const gateway of world.all) gateway.frames.length = 0
    moved(world, 0, "n2", "n1")
    for (const [gateway, player] of [
      [world.gateways.n1, "ann"],
      [world.gateways.n1, "cat"],
      [world.gateways.n2, "ben"]
    ] as const) {
      assert.deepStrictEqual(gateway.kinds(player), ["room_joined"])
      assert.deepInclude(gateway.frames[0]?.event, { resumed: true })
      assert.strictEqual(version(gateway, player), 1)
    }
    world.wait(60 * second)
    assert.deepStrictEqual(seats(world), ["ann", "ben", "cat"])
  })

  it("takes nobody's connection for a stream that was asked for before anyone was in", () => {
    const world = meeting()
    moved(world, 0, "n1")
    world.actor.attach("n2", { send: () => undefined, end: () => undefined }, 0, [])
    world.watch("n2")
    world.wait(60 * second)
    assert.deepStrictEqual(world.gateways.n2.kinds("ben"), ["room_joined"])
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), ["room_joined"])
  })

  it("seats those again whom its snapshot did not know", () => {
    const world = meeting()
    world.join("dan", "n2")
    moved(world, 1, "n1", "n2")
    assert.deepStrictEqual(seats(world), ["ann", "ben", "cat", "dan"])
    assert.strictEqual(world.gateways.n1.kinds("ann").at(-1), "player_joined")
  })

  it("sends room_closed (lost) to a member that has no seat any more", () => {
    const world = meeting({ maxPlayers: 3 })
    world.send("n1", { t: "leave", playerId: "cat", reason: "left" })
    world.join("dan", "n2")
    moved(world, 2, "n2", "n1")
    const frames = world.gateways.n2.frames.filter(({ player }) => player === "dan")
    const lost = { t: "room_closed", roomId: "rm_1", reason: "lost" } as const
    assert.deepStrictEqual(frames.at(-1)?.event, lost)
    assert.isFalse(world.gateways.n2.members.has("dan"))
  })

  it("keeps the time of those who were away", () => {
    const world = meeting()
    for (const player of ["ann", "ben", "cat"]) world.drop(player)
    moved(world, 0)
    world.wait(30 * second)
    assert.strictEqual(world.closed, "empty")
  })

  it("gives the grace to those whose node does not come back", () => {
    const world = meeting()
    moved(world, 0, "n1")
    world.wait(5 * second)
    assert.strictEqual(world.gateways.n1.kinds("ann").at(-1), "player_disconnected")
    world.wait(30 * second)
    assert.deepStrictEqual(seats(world), ["ann", "cat"])
  })

  it("leaves an activation behind that says and takes nothing", () => {
    const world = meeting()
    const old = world.actor
    const before = old.state
    world.move(0)
    for (const gateway of world.all) gateway.items = []
    old.submit("n1", [{ seq: 1, command: { t: "setState", playerId: "ann", patch: { a: 1 } } }])
    old.close("idle")
    world.wait(24 * 3600 * second)
    old.tick()
    let ended = false
    old.attach(
      "n1",
      {
        send: () => assert.fail("a fenced room speaks"),
        end: () => {
          ended = true
        }
      },
      1,
      world.gateways.n1.present
    )
    assert.isTrue(ended)
    assert.strictEqual(old.state, before)
  })
})

const asNode = (node: string) => (node === "n2" ? "n2" : "n1")

/** What a gateway does for a step of a player who is in. */
const speak = (world: ActorWorld, step: RoomStep): void => {
  for (const gateway of world.all) {
    if (!("player" in step) || !gateway.members.has(step.player)) continue
    const node = asNode(gateway.node)
    const { player: playerId } = step
    if (step.kind === "send") {
      const command = { t: "send", playerId, type: "x" } as const
      world.send(node, step.to === null ? command : { ...command, to: step.to })
    } else if (step.kind === "setState" || step.kind === "setMyState") {
      world.send(node, { t: step.kind, playerId, patch: step.patch })
    } else if (step.kind === "lock") {
      world.send(node, { t: "lock", playerId, locked: step.locked })
    } else if (step.kind === "leave") {
      world.send(node, { t: "leave", playerId, reason: step.reason })
    }
  }
}

const perform = (world: ActorWorld, step: RoomStep | JourneyStep): void => {
  switch (step.kind) {
    case "join":
    case "resume":
      world.drop(step.player, true)
      return world.join(step.player, asNode(step.node), step.kind)
    case "seat": {
      const node = asNode(step.node)
      world.actor.seat(step.players.map((player) => world.joiningPlayer(player, node)))
      return
    }
    case "drop":
      return world.drop(step.player, step.replaced)
    case "watch":
      return world.watch(asNode(step.node))
    case "unwatch":
      return world.unwatch(asNode(step.node))
    case "move":
      return world.move(step.stale)
    case "wait":
      return world.wait(step.millis)
    default:
      return speak(world, step)
  }
}

/** Every watching gateway and its members know the room as it is, and the room knows them. */
const check = (world: ActorWorld): void => {
  const { state } = world.actor
  if (state === undefined) return
  checkRoom(state, world.now, false)
  for (const gateway of world.all) {
    if (gateway.watcher === undefined) continue
    assert.strictEqual(gateway.unanswered.size, 0)
    const here = Array.from(state.members.values()).filter(
      (member) => isReachable(member) && member.attachment?.node === gateway.node
    )
    assert.sameMembers(
      here.map(({ id }) => id),
      Array.from(gateway.members.keys())
    )
    for (const { attachment, id } of here) {
      assert.strictEqual(gateway.members.get(id), attachment?.connectionId)
      const view = gateway.views.get(id)
      if (view === undefined || !agrees(view, state)) {
        assert.deepStrictEqual(view, roomView(state), id)
      }
    }
  }
}

describe("a room and its gateways, whatever happens to them", () => {
  it("agree about who is in and what the room is", () => {
    fc.assert(
      fc.property(generators.roomSettings, generators.roomLives, (settings, steps) => {
        const world = new ActorWorld(settings)
        world.join("ann")
        for (const step of steps) {
          perform(world, step)
          if (world.closed !== undefined) {
            for (const gateway of world.all) {
              assert.strictEqual(gateway.over, gateway.watcher !== undefined)
            }
            return
          }
          check(world)
        }
      }),
      { numRuns: 300 }
    )
  })
})
