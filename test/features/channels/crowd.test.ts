/**
 * Large channels: an event costs one item per node, joins and leaves are batched, and the cost of many
 * joins at once is linear.
 */
import { assert, describe, it } from "@effect/vitest"
import { channels as limits } from "#rpc/limits"
import { ChannelWorld, checkViews } from "../../support/channel-harness.ts"

const names = (count: number, from = 0): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, n) => `p${String(from + n).padStart(4, "0")}`)

/** A channel with this many players, who all know each other. */
const crowd = (count: number): ChannelWorld => {
  const world = new ChannelWorld({ maxMembers: limits.membersMax })
  world.send("n1", ...names(count).map((player) => world.joining(player)))
  world.wait(limits.presenceMillis)
  return world
}

describe("a channel of up to a hundred sockets", () => {
  it("reports each join and leave at once", () => {
    const world = crowd(99)
    world.join("ann")
    assert.strictEqual(world.gateways.n1.last("p0000")?.t, "channel_player_joined")
    world.leave("ann")
    assert.strictEqual(world.gateways.n1.last("p0000")?.t, "channel_player_left")
  })
})

describe("a channel of more than a hundred sockets", () => {
  it("reports joins and leaves together, at most once a second", () => {
    const world = crowd(150)
    const { n1 } = world.gateways
    n1.frames.length = 0
    const reports = () => n1.kinds("p0000")
    world.wait(limits.presenceMillis)
    world.join("ann")
    assert.deepStrictEqual(
      reports(),
      ["channel_players"],
      "the first report after a quiet time is immediate"
    )
    world.join("ben")
    world.leave("ann")
    world.leave("p0149")
    assert.lengthOf(reports(), 1)
    world.wait(limits.presenceMillis - 1)
    assert.lengthOf(reports(), 1)
    world.wait(1)
    assert.lengthOf(reports(), 2)
    const news = n1.last("p0000")
    assert.deepInclude(news, {
      left: [
        { playerId: "ann", reason: "left" },
        { playerId: "p0149", reason: "left" }
      ]
    })
    checkViews(world)
  })

  it("counts anonymous listeners as sockets", () => {
    const world = new ChannelWorld({ open: true })
    for (let n = 0; n <= limits.largeAudience; n++) world.listen()
    world.join("ann")
    world.join("ben")
    world.wait(limits.presenceMillis)
    assert.notInclude(world.gateways.n1.kinds("ann"), "channel_player_joined")
    assert.include(world.gateways.n1.kinds("ann"), "channel_players")
    checkViews(world)
  })

  it("sends a node one item per message, for any number of members there", () => {
    const world = crowd(500)
    const { n1 } = world.gateways
    const { items } = n1
    n1.frames.length = 0
    world.say("p0000")
    assert.strictEqual(n1.items, items + 2, "the message and the reply")
    assert.lengthOf(n1.frames, 500)
  })

  it("sends many simultaneous joins one shared snapshot", () => {
    const world = new ChannelWorld({ maxMembers: limits.membersMax })
    const { n1 } = world.gateways
    world.send("n1", ...names(1000).map((player) => world.joining(player)))
    // One frame with a thousand members, and their joins, of which many members received a part before.
    assert.isBelow(n1.bytes, 1000 * 400)
    const first = n1.frames.find(({ to }) => to === "p0999")?.event
    assert.lengthOf(first?.t === "channel_joined" ? first.members : [], 1000)
    world.wait(2 * limits.presenceMillis)
    assert.deepStrictEqual(n1.kinds("p0500"), ["channel_joined"], "there is no more news")
  })

  it("reports the members of a lost node once, after the grace period", () => {
    const world = crowd(150)
    for (const player of names(150, 150)) world.join(player, "n2")
    world.wait(2 * limits.presenceMillis)
    const { n1 } = world.gateways
    n1.frames.length = 0
    world.unwatch("n2")
    world.gateways.n2.members.clear()
    world.gateways.n2.views.clear()
    world.wait(60_000)
    assert.deepStrictEqual(n1.kinds("p0000"), ["channel_players"])
    assert.lengthOf(world.members, 150)
    checkViews(world)
  })
})

describe("a node that did not watch for a while", () => {
  it("learns which members were removed meanwhile", () => {
    const world = new ChannelWorld()
    world.join("ann", "n1")
    world.join("ben", "n2")
    world.unwatch("n2")
    world.outcome(world.actor.moderate({ op: "kick", target: "ben" }))
    world.watch("n2")
    assert.deepInclude(world.gateways.n2.last("ben"), { t: "channel_closed", reason: "kicked" })
    assert.deepStrictEqual(world.members, ["ann"])
    checkViews(world)
    assert.strictEqual(world.join("ben", "n2"), "ok")
  })
})

describe("a channel that moved", () => {
  it("waits for its members to attach again before it reports any leave", () => {
    const world = new ChannelWorld()
    for (const [player, node] of [
      ["ann", "n1"],
      ["ben", "n2"],
      ["cat", "n2"]
    ] as const) {
      world.join(player, node)
    }
    for (const gateway of Object.values(world.gateways)) gateway.frames.length = 0
    world.move()
    world.watch("n1")
    assert.strictEqual(world.say("ann"), "ok")
    world.wait(1000)
    world.watch("n2")
    world.wait(limits.rejoinMillis)
    assert.deepStrictEqual(world.gateways.n1.kinds("ann"), ["channel_message", "channel_joined"])
    assert.deepStrictEqual(world.gateways.n2.kinds("ben"), ["channel_joined"])
    checkViews(world)
  })

  it("does not admit banned members again, nor those of a lost node", () => {
    const world = new ChannelWorld()
    world.join("ann", "n1")
    world.join("ben", "n2")
    world.join("cat", "n2")
    world.unwatch("n2")
    world.outcome(world.actor.moderate({ op: "ban", target: "ben" }))
    world.move()
    world.watch("n2")
    assert.deepInclude(world.gateways.n2.last("ben"), { t: "channel_closed", reason: "banned" })
    world.wait(limits.rejoinMillis)
    assert.deepStrictEqual(world.members, ["cat"])
    checkViews(world)
  })

  it("leaves a fenced activation that sends nothing and ignores commands", () => {
    const world = new ChannelWorld()
    world.join("ann")
    const old = world.actor
    world.move()
    const before = old.state
    old.submit("n1", [{ seq: 1, command: { t: "send", playerId: "ann", type: "x" } }])
    old.close("deleted")
    old.tick()
    let ended = false
    const watcher = { send: () => assert.fail("it speaks"), end: () => void (ended = true) }
    old.attach("n1", watcher, 1, [], 0)
    assert.isTrue(ended)
    assert.strictEqual(old.state, before)
  })
})
