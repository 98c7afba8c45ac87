/**
 * Memberships of players who cannot return for a while: the channel is on no runner, or admission makes them
 * wait.
 */
import { assert, describe, it } from "@effect/vitest"
import { channelLimits } from "#rpc/channels/limits"
import { graces } from "#entities/reconnect-grace"
import { type ChannelHarness, channelOf } from "../../support/channel-harness.ts"

const second = 1000
const minute = 60 * second
const grace = channelLimits.graceSeconds * second

/** Asserts that the membership stays for this long, and ends on the next step of the grid. */
const assertLasts = (channel: ChannelHarness, player: string, millis: number): void => {
  channel.wait(millis - 1)
  assert.include(channel.members, player)
  channel.wait(1 + 250)
  assert.notInclude(channel.members, player)
}

describe("a membership of a channel whose runner stops", () => {
  it.for([5, 45, 300])(
    "keeps a membership for its whole grace after the service was away for %i s",
    (away) => {
      const channel = channelOf("ann", "ben")
      channel.drop("ben", "n1", true)
      channel.wait(2 * second)
      channel.stop(away * second)
      channel.watch("n1")
      assertLasts(channel, "ben", grace)
    }
  )

  it("keeps a member who dropped before the channel stopped for the rest of its grace", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ben")
    channel.wait(10 * second)
    channel.stop(5 * minute)
    channel.watch("n1")
    assertLasts(channel, "ben", grace - 10 * second)
  })

  it("sends no event when a member returns after its channel was away", () => {
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

  it("keeps the owner of a channel over a stop of five minutes", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ann", "n1", true)
    channel.stop(5 * minute)
    channel.watch("n1")
    channel.wait(20 * second)
    assert.strictEqual(channel.state.options.ownerId, "ann")
    assert.strictEqual(channel.join("ann"), "ok")
    assert.strictEqual(channel.state.options.ownerId, "ann")
  })

  it("ends a membership ten minutes from the drop at the latest", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ben", "n1", true)
    channel.stop(graces.absenceSeconds * second)
    channel.watch("n1")
    channel.wait(250)
    assert.notInclude(channel.members, "ben")
  })

  it("keeps no membership over a stop of a player who was banned or has left", () => {
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
  it("holds the grace of a membership while players wait, and then lets it go on", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ben")
    channel.wait(10 * second)
    channel.hold(true)
    channel.wait(minute)
    assert.include(channel.members, "ben")
    channel.hold(false)
    assertLasts(channel, "ben", grace - 10 * second)
  })

  it("holds the grace of a membership for two minutes at most", () => {
    const channel = channelOf("ann", "ben")
    channel.drop("ben")
    channel.hold(true)
    assertLasts(channel, "ben", graces.waitingSeconds * second + grace)
  })

  it("holds the time that an empty channel has left while players wait", () => {
    const channel = channelOf("ann")
    channel.leave("ann")
    channel.hold(true)
    channel.wait(minute)
    assert.isFalse(channel.closed)
    channel.hold(false)
    channel.wait(channelLimits.emptySeconds * second)
    assert.isTrue(channel.closed)
  })
})
