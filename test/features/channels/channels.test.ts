/** Realtime channels through the public interface: raw frames and HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, newPlayer, type OnlinePlayer } from "#testing/players"
import {
  connectAnonymously,
  errorCode,
  receivedTypes,
  manage,
  assertMember,
  moderate,
  uniqueName
} from "../../support/channel-calls.ts"
import { AppLive } from "../../support/service.ts"

const makeChannel = Effect.fnUntraced(function* (owner: OnlinePlayer, options: object = {}) {
  const reply = yield* owner.socket.request({ t: "channelCreate", ...options })
  assert.strictEqual(reply["ok"], true, JSON.stringify(reply))
  return String(at(reply, "data", "channel"))
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("channels", (it) => {
  it.effect("carries out every change that comes while the channel is deleted", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const name = yield* uniqueName
      const results = yield* Effect.forEach(
        Array.from({ length: 60 }, (_, i) => i),
        (i) =>
          i % 3 === 2
            ? manage(app, "DELETE", name)
            : manage(app, "PUT", name, { open: i % 2 === 0 }),
        { concurrency: 6 }
      )
      const statuses = results.map(({ status }) => status)
      const puts = statuses.filter((_, i) => i % 3 !== 2)
      assert.deepStrictEqual(new Set(puts), new Set([200]))
      const deletes = statuses.filter((_, i) => i % 3 === 2)
      assert.isTrue(deletes.every((status) => status === 200 || status === 404))
      const last = yield* manage(app, "PUT", name, { open: true })
      const read = yield* manage(app, "GET", name)
      assert.deepStrictEqual([last.status, read.status], [200, 200])
    })
  )

  it.effect("sends settings and members before the reply, then joins and leaves", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app, "Ada")
      const bob = yield* newPlayer(app, "Bob")
      const channel = yield* makeChannel(ada)
      assert.match(channel, /^@[a-z0-9]{10}$/)
      const made = ada.socket.received.findIndex(({ t }) => t === "channel_joined")
      assert.isBelow(
        made,
        ada.socket.received.findIndex(({ t }) => t === "reply")
      )
      yield* bob.socket.request({ t: "channelJoin", channel })
      const joined = yield* bob.socket.next("channel_joined")
      const settings = at(joined, "channel")
      assert.deepInclude(settings, {
        name: channel,
        managed: false,
        ownerId: ada.id,
        join: "anyone",
        send: "anyone",
        open: false,
        maxMembers: 100,
        voice: null
      })
      assert.deepStrictEqual(
        [at(joined, "members", 0, "id"), at(joined, "members", 1, "id")],
        [ada.id, bob.id]
      )
      assert.deepInclude(joined, { canSend: true, mutedUntil: null, voice: null })
      const news = yield* ada.socket.next("channel_player_joined")
      assert.deepInclude(at(news, "player"), { id: bob.id, displayName: "Bob" })
      yield* bob.socket.request({ t: "channelLeave", channel })
      const left = yield* ada.socket.next("channel_player_left")
      assert.deepInclude(left, { channel, playerId: bob.id, reason: "left" })
    })
  )

  it.effect("delivers messages to everyone in one order, the sender included", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const channel = yield* makeChannel(ada)
      yield* bob.socket.request({ t: "channelJoin", channel })
      for (const n of [1, 2, 3]) {
        yield* ada.socket.send({ t: "channelSend", channel, type: "n", data: { n } })
        yield* bob.socket.send({ t: "channelSend", channel, type: "n", data: { n: -n } })
      }
      const messagesOf = (player: OnlinePlayer) =>
        Effect.all(Array.from({ length: 6 }, () => player.socket.next("channel_message")))
      const [first, second] = [yield* messagesOf(ada), yield* messagesOf(bob)]
      assert.deepStrictEqual(first, second)
      assert.deepInclude(first[0], { channel, type: "n" })
      assert.isNumber(at(first, 0, "at"))
      assert.includeMembers(
        first.map((frame) => frame["from"]),
        [ada.id, bob.id]
      )
    })
  )

  it.effect("refuses each invalid request with its code", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const channel = yield* makeChannel(ada, { maxMembers: 1 })
      const refused = (player: OnlinePlayer, frame: object) =>
        Effect.map(player.socket.request(frame), errorCode)
      const expect = Effect.fnUntraced(function* (wanted: string, p: OnlinePlayer, frame: object) {
        assert.strictEqual(yield* refused(p, frame), wanted, JSON.stringify(frame))
      })
      yield* expect("channel_not_found", bob, { t: "channelJoin", channel: "nope" })
      yield* expect("channel_not_found", bob, { t: "channelJoin", channel: "No Name" })
      yield* expect("channel_full", bob, { t: "channelJoin", channel })
      yield* expect("not_in_channel", bob, { t: "channelSend", channel, type: "x" })
      yield* expect("channel_exists", bob, { t: "channelCreate", channel })
      yield* expect("invalid_frame", bob, { t: "channelCreate", channel: "plain" })
      yield* expect("invalid_frame", bob, { t: "channelCreate", maxMembers: 1001 })
      const mute = { op: "mute", playerId: ada.id }
      yield* expect("owner_only", bob, { t: "channelModerate", channel, ...mute })
      const long = { ...mute, seconds: 86_401 }
      yield* expect("invalid_frame", ada, { t: "channelModerate", channel, ...long })
      const large = { t: "channelSend", channel, type: "x", data: "é".repeat(8_192) }
      yield* expect("payload_too_large", ada, large)
      yield* expect("voice_too_large", bob, { t: "channelCreate", maxMembers: 101, voice: true })
      const left = yield* bob.socket.request({ t: "channelLeave", channel: "nope" })
      assert.deepStrictEqual(left["data"], {})
    })
  )

  it.effect("limits a connection to eight channels, beside a room", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      yield* ada.socket.request({ t: "create", mode: "default" })
      const channels: Array<string> = []
      for (let i = 0; i < 8; i++) channels.push(yield* makeChannel(ada))
      const ninth = yield* ada.socket.request({ t: "channelCreate" })
      assert.strictEqual(errorCode(ninth), "too_many_channels")
      const name = yield* uniqueName
      yield* manage(app, "PUT", name, {})
      const join = yield* ada.socket.request({ t: "channelJoin", channel: name })
      assert.strictEqual(errorCode(join), "too_many_channels")
      yield* ada.socket.request({ t: "channelLeave", channel: channels[0] })
      const again = yield* ada.socket.request({ t: "channelJoin", channel: name })
      assert.strictEqual(again["ok"], true)
    })
  )

  it.effect("limits a member to ten messages a second and bursts of twenty, per channel", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const one = yield* makeChannel(ada)
      const other = yield* makeChannel(ada)
      const frame = { t: "channelSend", channel: one, type: "x" }
      const replies = yield* Effect.all(
        Array.from({ length: 25 }, () => ada.socket.request(frame)),
        { concurrency: "unbounded" }
      )
      const refused = replies.filter((reply) => errorCode(reply) === "rate_limited")
      assert.isAtLeast(refused.length, 3)
      assert.isAtMost(refused.length, 5)
      yield* ada.socket.request({ t: "channelJoin", channel: other })
      yield* ada.socket.request({ t: "channelLeave", channel: one })
      const back = yield* ada.socket.request({ t: "channelJoin", channel: one })
      assert.strictEqual(back["ok"], true)
      const soon = yield* Effect.all(
        Array.from({ length: 20 }, () => ada.socket.request(frame)),
        { concurrency: "unbounded" }
      )
      assert.isTrue(
        soon.some((reply) => errorCode(reply) === "rate_limited"),
        "it is the same bucket"
      )
      const free = yield* ada.socket.request({ ...frame, channel: other })
      assert.strictEqual(free["ok"], true)
    })
  )

  it.effect("lets the owner invite, mute, kick and ban, with effect at once", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const channel = yield* makeChannel(ada, { join: "invited", send: "speakers" })
      const act = (op: string, seconds?: number) =>
        ada.socket.request({
          t: "channelModerate",
          channel,
          op,
          playerId: bob.id,
          ...(seconds === undefined ? {} : { seconds })
        })
      const join = () => bob.socket.request({ t: "channelJoin", channel })
      const send = () => bob.socket.request({ t: "channelSend", channel, type: "x" })
      assert.strictEqual(errorCode(yield* join()), "channel_forbidden")
      yield* act("invite")
      assert.strictEqual((yield* join())["ok"], true)
      assert.strictEqual(errorCode(yield* send()), "send_forbidden")
      yield* act("allowSend")
      const self = yield* bob.socket.next("channel_self")
      assert.deepInclude(self, { channel, canSend: true, mutedUntil: null })
      assert.strictEqual((yield* send())["ok"], true)
      yield* act("mute", 1)
      const muted = yield* bob.socket.next("channel_self")
      assert.strictEqual(muted["canSend"], false)
      assert.match(String(muted["mutedUntil"]), /^\d{4}-/)
      const refused = yield* send()
      assert.strictEqual(errorCode(refused), "muted")
      assert.strictEqual(at(refused, "error", "details", "until"), muted["mutedUntil"])
      const over = yield* bob.socket.next("channel_self")
      assert.deepInclude(over, { canSend: true, mutedUntil: null })
      yield* act("disallowSend")
      assert.strictEqual((yield* bob.socket.next("channel_self"))["canSend"], false)
      yield* act("kick")
      assert.strictEqual((yield* bob.socket.next("channel_closed"))["reason"], "kicked")
      assert.strictEqual((yield* ada.socket.next("channel_player_left"))["reason"], "kicked")
      assert.strictEqual((yield* join())["ok"], true)
      yield* act("ban", 3600)
      assert.strictEqual((yield* bob.socket.next("channel_closed"))["reason"], "banned")
      const banned = yield* join()
      assert.strictEqual(errorCode(banned), "channel_banned")
      assert.isString(at(banned, "error", "details", "until"))
      yield* act("unban")
      yield* act("uninvite")
      assert.strictEqual(errorCode(yield* join()), "channel_forbidden")
    })
  )

  it.effect("passes the channel to its earliest member when the owner leaves", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const channel = yield* makeChannel(ada)
      yield* bob.socket.request({ t: "channelJoin", channel })
      yield* ada.socket.request({ t: "channelLeave", channel })
      const changed = yield* bob.socket.next("channel_changed")
      assert.strictEqual(at(changed, "channel", "ownerId"), bob.id)
      const act = { t: "channelModerate", channel, op: "ban", playerId: ada.id }
      assert.strictEqual((yield* bob.socket.request(act))["ok"], true)
      const back = yield* ada.socket.request({ t: "channelJoin", channel })
      assert.strictEqual(errorCode(back), "channel_banned")
    })
  )

  it.effect(
    "hides a disconnect and a replacement from the members, and lets the player return",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const ada = yield* newPlayer(app)
        const bob = yield* newPlayer(app)
        const channel = yield* makeChannel(ada)
        yield* bob.socket.request({ t: "channelJoin", channel })
        const replacing = yield* app.online(bob)
        yield* replacing.socket.next("welcome")
        yield* bob.socket.closed
        yield* replacing.socket.request({ t: "channelJoin", channel })
        const rejoined = yield* replacing.socket.next("channel_joined")
        assert.strictEqual(at(rejoined, "members", 1, "id"), bob.id)
        yield* replacing.socket.terminate
        const again = yield* app.online(bob)
        yield* again.socket.next("welcome")
        yield* again.socket.request({ t: "channelJoin", channel })
        yield* again.socket.request({ t: "channelSend", channel, type: "back" })
        yield* ada.socket.next("channel_message")
        const joins = receivedTypes(ada).filter((t) => t.startsWith("channel_player"))
        assert.deepStrictEqual(joins, ["channel_player_joined"])
      })
  )

  it.effect("lets anonymous connections listen to open channels, and do nothing else", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const listener = yield* connectAnonymously(app)
      const ada = yield* newPlayer(app)
      const closed = yield* makeChannel(ada)
      const name = yield* uniqueName
      const managed = yield* uniqueName
      yield* manage(app, "PUT", managed, {})
      yield* manage(app, "PUT", name, { open: true })
      for (const channel of [closed, managed]) {
        const refused = yield* listener.request({ t: "channelJoin", channel })
        assert.strictEqual(errorCode(refused), "player_required")
      }
      const joined = yield* listener.request({ t: "channelJoin", channel: name })
      assert.deepStrictEqual(joined["data"], { channel: name })
      const snapshot = yield* listener.next("channel_joined")
      assert.deepInclude(snapshot, { canSend: false, members: [] })
      yield* ada.socket.request({ t: "channelJoin", channel: name })
      yield* listener.next("channel_player_joined")
      yield* ada.socket.send({ t: "channelSend", channel: name, type: "hi" })
      assert.strictEqual((yield* listener.next("channel_message"))["from"], ada.id)
      const send = yield* listener.request({ t: "channelSend", channel: name, type: "x" })
      assert.strictEqual(errorCode(send), "send_forbidden")
      const create = yield* listener.request({ t: "channelCreate" })
      assert.strictEqual(errorCode(create), "player_required")
      assert.strictEqual(at((yield* manage(app, "GET", name)).body, "anonymousCount"), 1)
      yield* manage(app, "PUT", name, { open: false })
      assert.strictEqual((yield* listener.next("channel_closed"))["reason"], "kicked")
      const after = yield* manage(app, "GET", name)
      assert.strictEqual(at(after.body, "anonymousCount"), 0)
      assert.lengthOf(Object(at(after.body, "members")), 1)
      yield* assertMember(ada, name)
      yield* moderate(app, name, { op: "kick", playerId: ada.id })
    })
  )
})
