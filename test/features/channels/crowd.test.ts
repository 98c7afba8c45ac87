/**
 * Large channels: an event costs one item per node, joins and leaves are batched, and the cost of many
 * joins at once is linear.
 */
import { assert, describe, it } from "@effect/vitest"
import { channelLimits } from "#rpc/channels/limits"
import { ChannelHarness, checkViews } from "../../support/channel-harness.ts"

const names = (count: number, from = 0): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, n) => `p${String(from + n).padStart(4, "0")}`)

/** A channel with this many players, who all know each other. */
const crowd = (count: number): ChannelHarness => {
  const harness = new ChannelHarness({ maxMembers: channelLimits.membersMax })
  harness.send("n1", ...names(count).map((player) => harness.joinCommand(player)))
  harness.wait(channelLimits.presenceMillis)
  return harness
}

describe("a channel of up to a hundred sockets", () => {
  it("reports each join and leave at once in a channel of up to a hundred sockets", () => {
    const harness = crowd(99)
    harness.join("ann")
    assert.strictEqual(harness.gateways.n1.last("p0000")?.t, "channel_player_joined")
    harness.leave("ann")
    assert.strictEqual(harness.gateways.n1.last("p0000")?.t, "channel_player_left")
  })
})

describe("a channel of more than a hundred sockets", () => {
  it("reports joins and leaves together in a larger channel, at most once a second", () => {
    const harness = crowd(150)
    const { n1 } = harness.gateways
    n1.frames.length = 0
    const reports = () => n1.kinds("p0000")
    harness.wait(channelLimits.presenceMillis)
    harness.join("ann")
    assert.deepStrictEqual(
      reports(),
      ["channel_players"],
      "the first report after a quiet time is immediate"
    )
    harness.join("ben")
    harness.leave("ann")
    harness.leave("p0149")
    assert.lengthOf(reports(), 1)
    harness.wait(channelLimits.presenceMillis - 1)
    assert.lengthOf(reports(), 1)
    harness.wait(1)
    assert.lengthOf(reports(), 2)
    const news = n1.last("p0000")
    assert.deepInclude(news, {
      left: [
        { playerId: "ann", reason: "left" },
        { playerId: "p0149", reason: "left" }
      ]
    })
    checkViews(harness)
  })

  it("counts anonymous listeners as sockets", () => {
    const harness = new ChannelHarness({ open: true })
    for (let n = 0; n <= channelLimits.largeAudience; n++) harness.listen()
    harness.join("ann")
    harness.join("ben")
    harness.wait(channelLimits.presenceMillis)
    assert.notInclude(harness.gateways.n1.kinds("ann"), "channel_player_joined")
    assert.include(harness.gateways.n1.kinds("ann"), "channel_players")
    checkViews(harness)
  })

  it("sends a node one item per message, for any number of members there", () => {
    const harness = crowd(500)
    const { n1 } = harness.gateways
    const { items } = n1
    n1.frames.length = 0
    harness.sendMessage("p0000")
    assert.strictEqual(n1.items, items + 2, "the message and the reply")
    assert.lengthOf(n1.frames, 500)
  })

  it("sends many simultaneous joins one shared snapshot", () => {
    const harness = new ChannelHarness({ maxMembers: channelLimits.membersMax })
    const { n1 } = harness.gateways
    harness.send("n1", ...names(1000).map((player) => harness.joinCommand(player)))
    // One frame with a thousand members, and their joins, of which many members received a part before.
    assert.isBelow(n1.bytes, 1000 * 400)
    const first = n1.frames.find(({ to }) => to === "p0999")?.event
    assert.lengthOf(first?.t === "channel_joined" ? first.members : [], 1000)
    harness.wait(2 * channelLimits.presenceMillis)
    assert.deepStrictEqual(n1.kinds("p0500"), ["channel_joined"], "there is no more news")
  })

  it("reports the members of a lost node once, after the grace period", () => {
    const harness = crowd(150)
    for (const player of names(150, 150)) harness.join(player, "n2")
    harness.wait(2 * channelLimits.presenceMillis)
    const { n1 } = harness.gateways
    n1.frames.length = 0
    harness.unwatch("n2")
    harness.gateways.n2.members.clear()
    harness.gateways.n2.views.clear()
    harness.wait(60_000)
    assert.deepStrictEqual(n1.kinds("p0000"), ["channel_players"])
    assert.lengthOf(harness.members, 150)
    checkViews(harness)
  })
})

describe("a node that did not watch for a while", () => {
  it("reports the members that were removed while a node did not watch", () => {
    const harness = new ChannelHarness()
    harness.join("ann", "n1")
    harness.join("ben", "n2")
    harness.unwatch("n2")
    harness.outcome(harness.actor.moderate({ op: "kick", target: "ben" }))
    harness.watch("n2")
    assert.deepInclude(harness.gateways.n2.last("ben"), { t: "channel_closed", reason: "kicked" })
    assert.deepStrictEqual(harness.members, ["ann"])
    checkViews(harness)
    assert.strictEqual(harness.join("ben", "n2"), "ok")
  })
})

describe("a channel that moved", () => {
  it("waits for the members of a moved channel to attach again before it reports any leave", () => {
    const harness = new ChannelHarness()
    for (const [player, node] of [
      ["ann", "n1"],
      ["ben", "n2"],
      ["cat", "n2"]
    ] as const) {
      harness.join(player, node)
    }
    for (const gateway of Object.values(harness.gateways)) gateway.frames.length = 0
    harness.move()
    harness.watch("n1")
    assert.strictEqual(harness.sendMessage("ann"), "ok")
    harness.wait(1000)
    harness.watch("n2")
    harness.wait(channelLimits.rejoinMillis)
    assert.deepStrictEqual(harness.gateways.n1.kinds("ann"), ["channel_message", "channel_joined"])
    assert.deepStrictEqual(harness.gateways.n2.kinds("ben"), ["channel_joined"])
    checkViews(harness)
  })

  it("readmits neither banned members to a moved channel nor those of a lost node", () => {
    const harness = new ChannelHarness()
    harness.join("ann", "n1")
    harness.join("ben", "n2")
    harness.join("cat", "n2")
    harness.unwatch("n2")
    harness.outcome(harness.actor.moderate({ op: "ban", target: "ben" }))
    harness.move()
    harness.watch("n2")
    assert.deepInclude(harness.gateways.n2.last("ben"), { t: "channel_closed", reason: "banned" })
    harness.wait(channelLimits.rejoinMillis)
    assert.deepStrictEqual(harness.members, ["cat"])
    checkViews(harness)
  })

  it("leaves a fenced activation that sends nothing and ignores commands", () => {
    const harness = new ChannelHarness()
    harness.join("ann")
    const old = harness.actor
    harness.move()
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
