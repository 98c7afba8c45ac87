/** Moderation that a node sends again, because its reply was lost: a channel executes it once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { fromRow, toRow } from "#entities/channel/snapshot"
import { channelOf } from "../../support/channel-harness.ts"

const ban = { t: "moderate", playerId: "ann", op: "ban", target: "ben" } as const
const kick = { ...ban, op: "kick" } as const

/** Ann, who owns the channel, and ben, on a node whose link numbers its commands. */
const numbered = () => {
  const harness = channelOf("ann", "ben")
  const { n1 } = harness.gateways
  const attach = () => {
    harness.unwatch("n1")
    harness.watch("n1")
  }
  return { harness, n1, attach }
}

describe("moderation that is sent again", () => {
  it("keeps an unban that followed when a ban is sent again", () => {
    const { attach, harness, n1 } = numbered()
    harness.actor.submit("n1", [{ seq: 11, command: ban }])
    Result.getOrThrow(harness.actor.moderate({ op: "unban", target: "ben" }))
    attach()
    harness.actor.submit("n1", [{ seq: 11, command: ban }])
    assert.strictEqual(n1.replies.get(11), "ok")
    assert.strictEqual(harness.state.lists.banned.size, 0)
  })

  it("keeps a player who has come back when a kick is sent again", () => {
    const { attach, harness } = numbered()
    harness.actor.submit("n1", [{ seq: 11, command: kick }])
    assert.notInclude(harness.members, "ben")
    attach()
    harness.actor.submit("n1", [{ seq: 12, command: harness.joinCommand("ben") }])
    harness.actor.submit("n1", [{ seq: 11, command: kick }])
    assert.include(harness.members, "ben")
  })

  it("stores the executed moderation with the lists", () => {
    const { harness } = numbered()
    harness.actor.submit("n1", [{ seq: 11, command: ban }])
    const row = toRow(
      harness.state,
      1,
      "n1",
      harness.now,
      harness.actor.activation.executed.stored()
    )
    const { links } = Effect.runSync(fromRow({ ...row }, harness.now))
    const stored = { node: "n1", link: 1, last: 11, forgotten: 0, refusals: [] }
    assert.deepStrictEqual(links, [stored])
  })
})

describe("a join that is sent again", () => {
  it("does not bring back a kicked player by a repeated channel join", () => {
    const { attach, harness, n1 } = numbered()
    const command = harness.joinCommand("cat")
    harness.actor.submit("n1", [{ seq: 11, command }])
    assert.include(harness.members, "cat")
    Result.getOrThrow(harness.actor.moderate({ op: "kick", target: "cat" }))
    attach()
    harness.actor.submit("n1", [{ seq: 11, command }])
    assert.strictEqual(n1.replies.get(11), "unavailable")
    assert.notInclude(harness.members, "cat")
  })

  it("repeats the refusal of a repeated channel join", () => {
    const { attach, harness, n1 } = numbered()
    Result.getOrThrow(harness.actor.moderate({ op: "ban", target: "cat" }))
    const command = harness.joinCommand("cat")
    harness.actor.submit("n1", [{ seq: 11, command }])
    Result.getOrThrow(harness.actor.moderate({ op: "unban", target: "cat" }))
    attach()
    harness.actor.submit("n1", [{ seq: 11, command }])
    assert.strictEqual(n1.replies.get(11), "channel_banned")
  })

  it("executes a repeated channel join in a newer activation, which does not know the member", () => {
    const { harness, n1 } = numbered()
    const command = harness.joinCommand("cat")
    harness.actor.submit("n1", [
      { seq: 11, command },
      { seq: 12, command: ban }
    ])
    n1.members.delete("cat")
    harness.move()
    harness.watch("n1")
    harness.actor.submit("n1", [{ seq: 11, command }])
    assert.strictEqual(n1.replies.get(11), "ok")
    assert.include(harness.members, "cat")
  })
})
