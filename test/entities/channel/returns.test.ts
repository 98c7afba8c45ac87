/**
 * Memberships of players who cannot return for a while: the channel is on no runner, or admission makes them
 * wait.
 */
import { assert, describe, it } from "@effect/vitest"
import { channels as limits, graces } from "#rpc/limits"
import { type ChannelHarness, channelOf } from "../../support/channel-harness.ts"

const second = 1000
const minute = 60 * second
const grace = limits.graceSeconds * second

/** Asserts that the membership stays for this long, and ends on the next step of the grid. */
const assertLasts = (channel: ChannelHarness, player: string, millis: number): void => {
  channel.wait(millis - 1)
  assert.include(channel.members, player)
  channel.wait(1 + 250)
  assert.notInclude(channel.members, player)
}

describe("a membership of a channel whose runner stops", () => {
  it.for([5, 45, 300])("lasts its whole grace after the service was away for %i s", (away) => {
    const channel = channelOf("ann", "ben")
    channel.drop("ben", "n1", true)
    channel.wait(2 * second)
    channel.stop(away * second)
    channel.watch("n1")
    assertLasts(channel, "ben", grace)
  })

  it("lasts what was left of the grace of a player who had left before by itself", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ben")
    channel.wait(10 * second)
    channel.stop(5 * minute)
    channel.watch("n1")
    assertLasts(channel, "ben", grace - 10 * second)
  })

  it("continues without an event when the player returns within its grace", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ben", "n1", true)
    channel.stop(minute)
    channel.watch("n1")
    channel.watch("n2")
    channel.wait(4 * second)
    channel.gateways.n1.frames.length = 0
    assert.strictEqual(channel.join("ben", "n2"), "ok")
    assert.deepStrictEqual(channel.gateways.n1.kinds("ann"), [])
    channel.wait(minute)
    assert.deepStrictEqual(channel.members, ["ann", "ben"])
  })

  it("keeps its place in a full channel, and the channel its owner", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ann", "n1", true)
    channel.stop(5 * minute)
    channel.watch("n1")
    channel.wait(20 * second)
    assert.strictEqual(channel.state.options.ownerId, "ann")
    assert.strictEqual(channel.join("ann"), "ok")
    assert.strictEqual(channel.state.options.ownerId, "ann")
  })

  it("ends ten minutes from the drop at the latest", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ben", "n1", true)
    channel.stop(graces.absenceSeconds * second)
    channel.watch("n1")
    channel.wait(250)
    assert.notInclude(channel.members, "ben")
  })

  it("is not given back to a player who was banned or has left", () => {
    const channel = channelOf("ann", "ben", "cat")
    channel.drop("ben")
    channel.actor.moderate({ op: "ban", target: "ben" })
    channel.leave("cat")
    channel.stop(minute)
    assert.notInclude(channel.members, "ben")
    assert.notInclude(channel.members, "cat")
  })
})

describe("a membership while players of its environment wait for admission", () => {
  it("stands still, and goes on when nobody waits", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ben")
    channel.wait(10 * second)
    channel.hold(true)
    channel.wait(minute)
    assert.include(channel.members, "ben")
    channel.hold(false)
    assertLasts(channel, "ben", grace - 10 * second)
  })

  it("stands still for two minutes at most", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ben")
    channel.hold(true)
    assertLasts(channel, "ben", graces.waitingSeconds * second + grace)
  })

  it("stands still with the time that an empty channel has left", () => {
    const channel = channelOf("ann")
    channel.leave("ann")
    channel.hold(true)
    channel.wait(minute)
    assert.isFalse(channel.closed)
    channel.hold(false)
    channel.wait(limits.emptySeconds * second)
    assert.isTrue(channel.closed)
  })
})
