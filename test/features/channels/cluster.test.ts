/**
 * Channels on two runner processes: a channel lives on one of them, its members are on both, and it
 * survives the loss of its runner.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { at, authenticate, guest } from "#testing/players"
import { manage, moderate } from "../../support/channel-calls.ts"
import { assertDelivery, twoMembers } from "../../support/channel-members.ts"
import { live } from "../../support/security/security-harness.ts"
import { TwoRunners } from "../../support/two-runners.ts"

layer(TwoRunners.layerWith(), live)("channels on two runners", (it) => {
  it.effect(
    "keeps a channel's members, settings and bans when its runner is killed",
    () =>
      Effect.gen(function* () {
        const { far, farAt, name, near, nearAt, owner } = yield* twoMembers("stage", {
          send: "speakers"
        })
        yield* moderate(nearAt, name, { op: "allowSend", playerId: far.id })
        yield* far.socket.next("channel_self")
        const made = yield* far.socket.request({ t: "channelCreate", maxMembers: 5 })
        const own = String(at(made, "data", "channel"))
        const { id: villain } = yield* guest(farAt)
        yield* manage(farAt, "POST", `${name}/moderate`, { op: "ban", playerId: villain })
        yield* owner.kill
        const back = yield* authenticate(farAt, near)
        yield* back.socket.next("welcome")
        const rejoined = yield* back.socket.request({ t: "channelJoin", channel: name })
        assert.strictEqual(rejoined["ok"], true, JSON.stringify(rejoined))
        // After all nodes have attached, everyone gets a snapshot in which nobody has left.
        const snapshot = yield* far.socket.next(
          "channel_joined",
          (frame) => at(frame, "channel", "name") === name && at(frame, "members", 1) !== undefined
        )
        assert.sameMembers(
          [at(snapshot, "members", 0, "id"), at(snapshot, "members", 1, "id")],
          [near.id, far.id]
        )
        assert.strictEqual(snapshot["canSend"], true)
        yield* assertDelivery(far, back, name, "again")
        const read = yield* manage(farAt, "GET", name)
        assert.deepStrictEqual(at(read.body, "banned"), [{ playerId: villain, until: null }])
        assert.isEmpty(far.socket.received.filter(({ t }) => t === "channel_player_left"))
        const send = yield* far.socket.request({ t: "channelSend", channel: own, type: "mine" })
        assert.strictEqual(send["ok"], true, JSON.stringify(send))
        const mine = yield* manage(farAt, "GET", encodeURIComponent(own))
        assert.deepInclude(at(mine.body, "channel"), { ownerId: far.id, maxMembers: 5 })
      }),
    { tags: "long" }
  )
})

describe("a runner that leaves for a while or for good", () => {
  it.live(
    "hands channels over from a runner that stops gracefully",
    () =>
      Effect.gen(function* () {
        const { far, name, near, owner } = yield* twoMembers("lobby")
        yield* assertDelivery(near, far, name, "before")
        yield* Effect.forkChild(owner.stop)
        assert.strictEqual((yield* near.socket.closed).code, 1012)
        const moved = yield* far.socket.next("channel_joined")
        // Who lost its connection by the stop is still a member: it may return.
        assert.sameMembers(
          [at(moved, "members", 0, "id"), at(moved, "members", 1, "id")],
          [near.id, far.id]
        )
        const reply = yield* far.socket.request({ t: "channelSend", channel: name, type: "after" })
        assert.strictEqual(reply["ok"], true, JSON.stringify(reply))
      }).pipe(Effect.provide(TwoRunners.layerWith()), Effect.scoped),
    { tags: "long" }
  )

  it.live(
    "denies a frozen runner its channels when it resumes",
    () =>
      Effect.gen(function* () {
        const { far, farAt, name, near, owner } = yield* twoMembers("lobby")
        yield* owner.signal("SIGSTOP")
        yield* far.socket.next("channel_joined")
        yield* manage(farAt, "PUT", name, { maxMembers: 5 })
        // What waits in the frozen runner's sockets is the first thing that it reads.
        yield* near.socket.send({ t: "channelSend", channel: name, type: "late" })
        yield* owner.signal("SIGCONT")
        const rejoined = yield* near.socket.next("channel_joined")
        assert.strictEqual(at(rejoined, "channel", "maxMembers"), 5)
        yield* assertDelivery(far, near, name, "again")
        yield* assertDelivery(near, far, name, "and again")
      }).pipe(Effect.provide(TwoRunners.layerWith()), Effect.scoped),
    { tags: "long" }
  )
})
