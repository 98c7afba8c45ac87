/** Moderation by the owner and the server API, and the permitted voice modes. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { channelLimits } from "#rpc/channels/limits"
import { withChanges, voiceOf } from "#entities/channel/options"
import { ChannelHarness, channelOf } from "../../support/channel-harness.ts"

const second = 1000

describe("moderation of a channel", () => {
  it("mutes a member for the given time, and notifies the member at its start and end", () => {
    const harness = channelOf("ann", "ben")
    harness.moderate("ann", "mute", "ben", 10)
    assert.deepInclude(harness.gateways.n1.last("ben"), { t: "channel_self", canSend: false })
    assert.strictEqual(harness.sendMessage("ben"), "muted")
    harness.wait(9999)
    assert.strictEqual(harness.sendMessage("ben"), "muted")
    harness.wait(1)
    const self = { t: "channel_self", canSend: true, mutedUntil: null } as const
    assert.deepInclude(harness.gateways.n1.last("ben"), self)
    assert.strictEqual(harness.sendMessage("ben"), "ok")
  })

  it("refuses an owner who mutes, kicks or bans itself", () => {
    const harness = channelOf("ann", "ben")
    const { writes } = harness
    for (const op of ["mute", "kick", "ban"] as const) {
      assert.strictEqual(harness.moderate("ann", op, "ann", 10), "invalid_frame", op)
      assert.strictEqual(harness.moderate("ben", op, "ben", 10), "owner_only", op)
    }
    assert.deepStrictEqual(harness.members, ["ann", "ben"])
    assert.strictEqual(harness.sendMessage("ann"), "ok")
    assert.strictEqual(harness.writes, writes)
  })

  it("bans a player for the given time, or until an unban", () => {
    const harness = channelOf("ann", "ben")
    harness.moderate("ann", "ban", "ben", 10)
    assert.deepStrictEqual(harness.members, ["ann"])
    assert.strictEqual(harness.join("ben"), "channel_banned")
    harness.wait(10 * second)
    assert.strictEqual(harness.join("ben"), "ok")
    harness.moderate("ann", "ban", "ben")
    harness.wait(3600 * second)
    assert.strictEqual(harness.join("ben"), "channel_banned")
    harness.moderate("ann", "unban", "ben")
    assert.strictEqual(harness.join("ben"), "ok")
  })

  it("writes nothing when an operation changes nothing", () => {
    const harness = channelOf("ann", "ben")
    const { writes } = harness
    for (const op of ["unmute", "unban", "uninvite", "disallowSend", "kick"] as const) {
      assert.strictEqual(harness.moderate("ann", op, "cat"), "ok")
    }
    assert.strictEqual(harness.writes, writes)
  })

  it("refuses entries beyond the limit of a list, and removes expired ones first", () => {
    const harness = channelOf("ann")
    for (let n = 0; n < channelLimits.listMax; n++) harness.moderate("ann", "mute", `p${n}`, 10)
    assert.strictEqual(harness.moderate("ann", "mute", "ben"), "channel_list_full")
    harness.wait(10 * second)
    assert.strictEqual(harness.moderate("ann", "mute", "ben"), "ok")
  })
})

describe("voice in a channel", () => {
  const modeOf = (requested: Parameters<typeof voiceOf>[0], members: number) => {
    const voice = voiceOf(requested, members)
    return Result.isFailure(voice) ? voice.failure._tag : (voice.success?.mode ?? null)
  }

  it("uses peer-to-peer voice for up to eight members, and an SFU for up to a hundred", () => {
    assert.deepStrictEqual(
      [modeOf(true, 8), modeOf(true, 9), modeOf(true, 100), modeOf(true, 101), modeOf(null, 1000)],
      ["p2p", "sfu", "sfu", "voice_too_large", null]
    )
    assert.strictEqual(modeOf({ mode: "p2p" }, 9), "voice_too_large")
    assert.strictEqual(modeOf({ mode: "sfu" }, 2), "sfu")
  })

  it("refuses to change the voice settings during a call, unlike other settings", () => {
    const harness = new ChannelHarness({ maxMembers: 8, voice: { mode: "p2p", relayOnly: true } })
    const calling = { ...harness.state, inCall: 1 }
    const outcome = (changes: Parameters<typeof withChanges>[1]) => {
      const result = withChanges(calling, changes)
      return Result.isFailure(result) ? result.failure._tag : "ok"
    }
    assert.strictEqual(outcome({ voice: { mode: "sfu" } }), "voice_in_use")
    assert.strictEqual(outcome({ voice: null }), "voice_in_use")
    assert.strictEqual(outcome({ voice: true, send: "server" }), "ok")
  })
})
