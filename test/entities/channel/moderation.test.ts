/** Moderation by the owner and the server API, and the permitted voice modes. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { channels as limits } from "#rpc/limits"
import { withChanges, voiceOf } from "#entities/channel/options"
import { ChannelWorld, club } from "../../support/channel-harness.ts"

const second = 1000

describe("moderation", () => {
  it("mutes until the time is up, and says so", () => {
    const world = club("ann", "ben")
    world.act("ann", "mute", "ben", 10)
    assert.deepInclude(world.gateways.n1.last("ben"), { t: "channel_self", canSend: false })
    assert.strictEqual(world.say("ben"), "muted")
    world.wait(9999)
    assert.strictEqual(world.say("ben"), "muted")
    world.wait(1)
    const self = { t: "channel_self", canSend: true, mutedUntil: null } as const
    assert.deepInclude(world.gateways.n1.last("ben"), self)
    assert.strictEqual(world.say("ben"), "ok")
  })

  it("bans until the time is up, or until it is undone", () => {
    const world = club("ann", "ben")
    world.act("ann", "ban", "ben", 10)
    assert.deepStrictEqual(world.members, ["ann"])
    assert.strictEqual(world.join("ben"), "channel_banned")
    world.wait(10 * second)
    assert.strictEqual(world.join("ben"), "ok")
    world.act("ann", "ban", "ben")
    world.wait(3600 * second)
    assert.strictEqual(world.join("ben"), "channel_banned")
    world.act("ann", "unban", "ben")
    assert.strictEqual(world.join("ben"), "ok")
  })

  it("that changes nothing is not written", () => {
    const world = club("ann", "ben")
    const { writes } = world
    for (const op of ["unmute", "unban", "uninvite", "disallowSend", "kick"] as const) {
      assert.strictEqual(world.act("ann", op, "cat"), "ok")
    }
    assert.strictEqual(world.writes, writes)
  })

  it("stops at a full list, and forgets what is over to make room", () => {
    const world = club("ann")
    for (let n = 0; n < limits.listMax; n++) world.act("ann", "mute", `p${n}`, 10)
    assert.strictEqual(world.act("ann", "mute", "ben"), "channel_list_full")
    world.wait(10 * second)
    assert.strictEqual(world.act("ann", "mute", "ben"), "ok")
  })
})

describe("voice", () => {
  const modeOf = (wish: Parameters<typeof voiceOf>[0], members: number) => {
    const voice = voiceOf(wish, members)
    return Result.isFailure(voice) ? voice.failure._tag : (voice.success?.mode ?? null)
  }

  it("is peer to peer up to eight, the relay server's up to a hundred", () => {
    assert.deepStrictEqual(
      [modeOf(true, 8), modeOf(true, 9), modeOf(true, 100), modeOf(true, 101), modeOf(null, 1000)],
      ["p2p", "sfu", "sfu", "voice_too_large", null]
    )
    assert.strictEqual(modeOf({ mode: "p2p" }, 9), "voice_too_large")
    assert.strictEqual(modeOf({ mode: "sfu" }, 2), "sfu")
  })

  it("cannot change while somebody is in the call; all else can", () => {
    const world = new ChannelWorld({ maxMembers: 8, voice: { mode: "p2p", relayOnly: true } })
    const calling = { ...world.state, inCall: 1 }
    const outcome = (changes: Parameters<typeof withChanges>[1]) => {
      const result = withChanges(calling, changes)
      return Result.isFailure(result) ? result.failure._tag : "ok"
    }
    assert.strictEqual(outcome({ voice: { mode: "sfu" } }), "voice_in_use")
    assert.strictEqual(outcome({ voice: null }), "voice_in_use")
    assert.strictEqual(outcome({ voice: true, send: "server" }), "ok")
  })
})
