/**
 * Channels on two runner processes: a channel lives on one of them, its members are on both, and it
 * survives the loss of its runner.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { at, authenticate, guest, newPlayer, type OnlinePlayer } from "#testing/players"
import { connectAnonymously, errorCode, manage, moderate } from "../../support/channel-calls.ts"
import { live } from "../../support/security/security-harness.ts"
import { TwoRunners } from "../../support/two-runners.ts"

/** The node that wrote the channel's row. */
const nodeOf = (url: string, name: string) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.make({ url: Redacted.make(url) })
    const [row] = yield* sql<{ node: string }>`select node from channels where name = ${name}`
    return row?.node ?? (yield* Effect.fail("no row"))
  }).pipe(
    Effect.scoped,
    Effect.retry({ times: 100, schedule: Schedule.spaced(50) }),
    Effect.provide(Reactivity.layer),
    Effect.orDie
  )

/** A managed channel with a player on each runner, and who owns it. */
const twoMembers = Effect.fnUntraced(function* (name: string, settings: object = {}) {
  const { at1, at2, databaseUrl, first, second } = yield* TwoRunners
  yield* manage(at1, "PUT", name, settings)
  const ada = yield* newPlayer(at1, "Ada")
  const bob = yield* newPlayer(at2, "Bob")
  yield* ada.socket.request({ t: "channelJoin", channel: name })
  yield* bob.socket.request({ t: "channelJoin", channel: name })
  yield* ada.socket.next("channel_player_joined")
  yield* ada.socket.next("channel_joined")
  yield* bob.socket.next("channel_joined")
  const node = yield* nodeOf(databaseUrl, name)
  const ownerIsFirst = node === first.node
  return ownerIsFirst
    ? { name, owner: first, near: ada, far: bob, nearAt: at1, farAt: at2 }
    : { name, owner: second, near: bob, far: ada, nearAt: at2, farAt: at1 }
})

/** Sends a message, and asserts that the other player receives it. */
const assertDelivery = (from: OnlinePlayer, to: OnlinePlayer, channel: string, type: string) =>
  Effect.gen(function* () {
    const reply = yield* from.socket.request({ t: "channelSend", channel, type })
    assert.strictEqual(reply["ok"], true, JSON.stringify(reply))
    const message = yield* to.socket.next("channel_message", (frame) => frame["type"] === type)
    assert.strictEqual(message["from"], from.id)
  })

layer(TwoRunners.layerWith(), live)("channels on two runners", (it) => {
  it.effect("reaches, counts and moderates members of a channel on both runners", () =>
    Effect.gen(function* () {
      const { far, farAt, name, near, nearAt } = yield* twoMembers("open", { open: true })
      yield* assertDelivery(near, far, name, "there")
      yield* assertDelivery(far, near, name, "back")
      const listener = yield* connectAnonymously(farAt)
      yield* listener.request({ t: "channelJoin", channel: name })
      for (const target of [nearAt, farAt]) {
        const sent = yield* manage(target, "POST", `${name}/messages`, { type: "news" })
        assert.deepStrictEqual(sent.body, { delivered: 3 })
        yield* listener.next("channel_message", (frame) => frame["type"] === "news")
      }
      yield* moderate(nearAt, name, { op: "mute", playerId: far.id })
      assert.strictEqual((yield* far.socket.next("channel_self"))["canSend"], false)
      const muted = yield* far.socket.request({ t: "channelSend", channel: name, type: "x" })
      assert.strictEqual(errorCode(muted), "muted")
      yield* moderate(farAt, name, { op: "ban", playerId: near.id })
      assert.strictEqual((yield* near.socket.next("channel_closed"))["reason"], "banned")
      const left = yield* listener.next("channel_player_left")
      assert.deepInclude(left, { playerId: near.id, reason: "banned" })
      // One after the other: the second connection of a player replaces the first.
      const isRefused = Effect.fnUntraced(function* ({ socket }: OnlinePlayer) {
        const back = yield* socket.request({ t: "channelJoin", channel: name })
        assert.strictEqual(errorCode(back), "channel_banned")
      })
      yield* isRefused(near)
      const elsewhere = yield* authenticate(farAt, near)
      yield* elsewhere.socket.next("welcome")
      yield* isRefused(elsewhere)
    })
  )

  it.effect("keeps a channel's members, settings and bans when its runner is killed", () =>
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
    })
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
