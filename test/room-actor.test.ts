/**
 * A live room among its gateways (design sections 4 and 5): order, who is told what, and what becomes
 * of members when streams break, nodes go and the room moves. See `room-gateways.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { hears, roomView } from "#entities/room/model"
import type { RoomItem } from "#entities/room/protocol"
import { type JourneyStep, roomLives, roomSettings, type RoomStep } from "./generators.ts"
import { ActorWorld, type Gateway } from "./room-gateways.ts"
import { agrees, checkRoom } from "./room-world.ts"

const second = 1000

const kinds = (items: ReadonlyArray<RoomItem>) => items.map(({ k }) => k)

const seats = (world: ActorWorld) => Array.from(world.actor.state?.members.keys() ?? [])

const version = (gateway: Gateway, player: string) => gateway.views.get(player)?.version

/** Ann and cat on n1, ben on n2; nothing was told so far. */
const meeting = (overrides: ConstructorParameters<typeof ActorWorld>[0] = {}): ActorWorld => {
  const world = new ActorWorld(overrides)
  world.join("ann", "n1")
  world.join("ben", "n2")
  world.join("cat", "n1")
  for (const gateway of world.all) {
    gateway.items = []
    gateway.frames.length = 0
  }
  return world
}

const write = (world: ActorWorld, player: string, node: "n1" | "n2", round: number) =>
  world.send(node, { t: "setState", playerId: player, patch: { round } })

describe("a live room", () => {
  it("tells every node the same events in the same order", () => {
    const world = meeting()
    for (let round = 1; round <= 5; round++) {
      write(world, "ann", "n1", round)
      world.send("n2", { t: "send", playerId: "ben", type: "move", to: ["ann", "ben"] })
    }
    const told = (gateway: Gateway) => gateway.items.filter(({ k }) => k === "event")
    assert.lengthOf(told(world.gateways.n1), 10)
    assert.deepStrictEqual(told(world.gateways.n1), told(world.gateways.n2))
  })

  it("answers in order, after the events of the command, on the sender's node only", () => {
    const world = meeting()
    write(world, "ann", "n1", 1)
    world.send("n1", { t: "lock", playerId: "cat", locked: true })
    assert.deepStrictEqual(kinds(world.gateways.n1.items), ["event", "reply", "refuse"])
    assert.deepStrictEqual(kinds(world.gateways.n2.items), ["event"])
    assert.include(world.gateways.n1.items[2], { player: "cat" })
  })

  it("gives a newcomer the room before the reply, on its own node only", () => {
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
    const refused = n1.items.find((item) => item.k === "refuse")
    assert.include(refused?.error, { code: "room_not_found" })
    assert.isTrue(Result.isFailure(world.actor.seat([world.newcomer("ben", "n2")])))
  })

  it("tells its members why it closes", () => {
    const world = meeting()
    world.actor.close("feature_disabled")
    for (const gateway of world.all) assert.isTrue(gateway.over)
    assert.deepStrictEqual(world.gateways.n2.kinds("ben"), ["room_closed"])
    assert.strictEqual(world.closed, "feature_disabled")
  })

  it("names all who have a seat when matchmaking asks, and only new ones are news", () => {
    const world = meeting({ maxPlayers: 4 })
    const newcomers = ["ann", "dan", "eve"].map((player) => world.newcomer(player, "n2"))
    assert.deepStrictEqual(world.actor.seat(newcomers), Result.succeed(["ann", "dan"]))
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), ["player_joined"])
  })
})

describe("a node that stops watching", () => {
  it("loses its members' connections after five seconds", () => {
    const world = meeting()
    world.unwatch("n2")
    world.wait(5 * second - 1)
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), [])
    world.wait(1)
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), ["player_disconnected"])
  })

  it("gets the room anew when it watches again, and its members lose nothing", () => {
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
    world.actor.seat([world.newcomer("dan", "n2")])
    world.unwatch("n2")
    world.watch("n2")
    world.wait(10 * second - 1)
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), ["player_joined"])
    world.wait(31 * second)
    assert.notInclude(seats(world), "dan")
  })

  it("cannot leave a connection behind that nobody answers for", () => {
    const world = meeting()
    world.unwatch("n2")
    world.wait(5 * second)
    const late = { t: "join", ...world.newcomer("dan", "n2") } as const
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

  it("gives every member the room anew, and nothing before that", () => {
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
      assert.strictEqual(version(gateway, player), 1)
    }
    world.wait(60 * second)
    assert.deepStrictEqual(seats(world), ["ann", "ben", "cat"])
  })

  it("seats those again whom its snapshot did not know", () => {
    const world = meeting()
    world.join("dan", "n2")
    moved(world, 1, "n1", "n2")
    assert.deepStrictEqual(seats(world), ["ann", "ben", "cat", "dan"])
    assert.strictEqual(world.gateways.n1.kinds("ann").at(-1), "player_joined")
  })

  it("tells a member it has no seat for any more that the room is lost", () => {
    const world = meeting({ maxPlayers: 3 })
    world.send("n1", { t: "leave", playerId: "cat", reason: "left" })
    world.join("dan", "n2")
    moved(world, 2, "n2", "n1")
    const told = world.gateways.n2.frames.filter(({ player }) => player === "dan")
    const lost = { t: "room_closed", roomId: "rm_1", reason: "lost" } as const
    assert.deepStrictEqual(told.at(-1)?.event, lost)
    assert.isFalse(world.gateways.n2.members.has("dan"))
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
        tell: () => assert.fail("a fenced room speaks"),
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
    if (step.k === "send") {
      const command = { t: "send", playerId, type: "x" } as const
      world.send(node, step.to === null ? command : { ...command, to: step.to })
    } else if (step.k === "setState" || step.k === "setMyState") {
      world.send(node, { t: step.k, playerId, patch: step.patch })
    } else if (step.k === "lock") {
      world.send(node, { t: "lock", playerId, locked: step.locked })
    } else if (step.k === "leave") {
      world.send(node, { t: "leave", playerId, reason: step.reason })
    }
  }
}

const perform = (world: ActorWorld, step: RoomStep | JourneyStep): void => {
  switch (step.k) {
    case "join":
    case "resume":
      world.drop(step.player, true)
      return world.join(step.player, asNode(step.node), step.k)
    case "seat": {
      const node = asNode(step.node)
      world.actor.seat(step.players.map((player) => world.newcomer(player, node)))
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
      (member) => hears(member) && member.attachment?.node === gateway.node
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
      fc.property(roomSettings, roomLives, (settings, steps) => {
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
