/** Players whom a channel removes while what it sends to their node is lost. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { channelLimits } from "#rpc/channels/limits"
import { type ChannelHarness, channelOf, checkViews } from "../../support/channel-harness.ts"

const second = 1000

/** Ann on one node and ben on another one, to which outputs are lost from now on. */
const lossy = (): ChannelHarness => {
  const harness = channelOf("ann")
  harness.join("ben", "n2")
  harness.gateways.n2.watcher = { send: () => undefined, end: () => undefined }
  return harness
}

const kick = (harness: ChannelHarness) =>
  Result.getOrThrow(harness.actor.moderate({ op: "kick", target: "ben" }))

describe("a node that attaches again to a channel", () => {
  it("learns of the kick of a member that it has missed, and does not bring the member back", () => {
    const harness = lossy()
    kick(harness)
    harness.watch("n2")
    assert.deepStrictEqual(harness.members, ["ann"])
    assert.deepInclude(harness.gateways.n2.last("ben"), { t: "channel_closed", reason: "kicked" })
    checkViews(harness)
    const others = harness.gateways.n1.kinds("ann")
    assert.strictEqual(others.at(-1), "channel_player_left")
  })

  it("learns of a kick when it has missed that twice", () => {
    const harness = lossy()
    kick(harness)
    const { n2 } = harness.gateways
    const { actor } = harness
    const present = { playerId: "ben", displayName: "ben", openChat: true, joinedAt: harness.now }
    const connectionId = n2.members.get("ben")?.connectionId ?? ""
    const lost = { send: () => undefined, end: () => undefined }
    actor.attach("n2", lost, n2.epoch, [{ ...present, connectionId }], 0, 1)
    harness.watch("n2")
    assert.deepStrictEqual(harness.members, ["ann"])
    checkViews(harness)
  })

  it("learns of a ban of a member that was lifted since", () => {
    const harness = lossy()
    harness.actor.removePlayer("ben", "banned")
    harness.watch("n2")
    assert.deepStrictEqual(harness.members, ["ann"])
    assert.deepInclude(harness.gateways.n2.last("ben"), { t: "channel_closed", reason: "banned" })
    checkViews(harness)
  })

  it("brings a member back who has joined again after a kick", () => {
    const harness = lossy()
    kick(harness)
    harness.watch("n2")
    assert.strictEqual(harness.join("ben", "n2"), "ok")
    harness.unwatch("n2")
    harness.watch("n2")
    assert.deepStrictEqual(harness.members, ["ann", "ben"])
    checkViews(harness)
  })

  it("brings a member back that it had for longer than the grace, while it could not attach", () => {
    const harness = channelOf("ann")
    harness.join("ben", "n2")
    harness.unwatch("n2")
    harness.wait((channelLimits.graceSeconds + 10) * second)
    assert.deepStrictEqual(harness.members, ["ann"])
    harness.watch("n2")
    assert.deepStrictEqual(harness.members, ["ann", "ben"])
  })

  it("brings a member back whose kick lies further back than a thousand others", () => {
    const harness = lossy()
    kick(harness)
    for (let index = 0; index <= channelLimits.removalsMax; index++) {
      harness.join(`p${index}`)
      Result.getOrThrow(harness.actor.moderate({ op: "kick", target: `p${index}` }))
    }
    harness.watch("n2")
    assert.deepStrictEqual(harness.members, ["ann", "ben"])
  })
})
