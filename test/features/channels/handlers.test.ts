/** Channels that the server manages: settings, moderation, features, ages and durability. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, goOnline, guest, newPlayer, request } from "#testing/players"
import {
  connectAnonymously,
  errorCode,
  manage,
  assertMember,
  moderate,
  uniqueName
} from "../../support/channel-calls.ts"
import { AppLive, DatabaseLive } from "../../support/service.ts"

/** The id of a player who need not exist. */
const idOf = (n: number) => `pl_${String(n).padStart(26, "0")}`

const channelsOn = { version: 1, features: { realtimeChannels: true } }

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })(
  "channel management",
  (it) => {
    it.effect("PUT creates a channel with defaults, and merges later changes", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const name = yield* uniqueName
        const made = yield* manage(app, "PUT", name, {})
        assert.strictEqual(made.status, 200)
        assert.deepInclude(made.body, {
          allow: [],
          speakers: [],
          muted: [],
          banned: [],
          members: []
        })
        assert.deepInclude(at(made.body, "channel"), {
          name,
          managed: true,
          ownerId: null,
          join: "anyone",
          send: "anyone",
          open: false,
          maxMembers: 100,
          voice: null
        })
        assert.match(String(at(made.body, "channel", "createdAt")), /^\d{4}-.*Z$/)
        yield* manage(app, "PUT", name, { send: "speakers", allow: [idOf(1)], speakers: [idOf(2)] })
        const read = yield* manage(app, "GET", name)
        assert.deepInclude(read.body, { allow: [idOf(1)], speakers: [idOf(2)], anonymousCount: 0 })
        assert.deepInclude(at(read.body, "channel"), { send: "speakers", join: "anyone" })
      })
    )

    it.effect("validates and returns voice settings", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const name = yield* uniqueName
        const put = (body: object) => manage(app, "PUT", name, body)
        const voice = (answer: { readonly body: unknown }) => at(answer.body, "channel", "voice")
        const small = yield* put({ maxMembers: 8, voice: true })
        assert.deepStrictEqual(voice(small), { mode: "p2p", relayOnly: true })
        const large = yield* put({ maxMembers: 9 })
        assert.strictEqual(large.status, 400)
        assert.strictEqual(at(large.body, "error", "code"), "voice_too_large")
        const sfu = yield* put({ maxMembers: 100, voice: { relayOnly: false } })
        assert.deepStrictEqual(voice(sfu), { mode: "sfu", relayOnly: false })
        assert.strictEqual((yield* put({ maxMembers: 101 })).status, 400)
        assert.isNull(voice(yield* put({ maxMembers: 101, voice: null })))
        const ada = yield* newPlayer(app)
        const created = yield* ada.socket.request({
          t: "channelCreate",
          maxMembers: 8,
          voice: true
        })
        assert.strictEqual(created["ok"], true)
        const joined = yield* ada.socket.next("channel_joined")
        assert.deepStrictEqual(joined["voice"], { mode: "p2p", relayOnly: true })
      })
    )

    it.effect("returns to how many sockets a message was delivered", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const name = yield* uniqueName
        yield* manage(app, "PUT", name, { open: true, send: "server" })
        const ada = yield* newPlayer(app)
        const bob = yield* newPlayer(app)
        const listener = yield* connectAnonymously(app)
        yield* ada.socket.request({ t: "channelJoin", channel: name })
        yield* bob.socket.request({ t: "channelJoin", channel: name })
        yield* listener.request({ t: "channelJoin", channel: name })
        const sent = yield* manage(app, "POST", `${name}/messages`, { type: "news", data: [1] })
        assert.deepStrictEqual(sent.body, { delivered: 3 })
        const message = yield* listener.next("channel_message")
        assert.deepInclude(message, { channel: name, from: "server", type: "news", data: [1] })
        yield* ada.socket.next("channel_message")
        const refused = yield* ada.socket.request({ t: "channelSend", channel: name, type: "x" })
        assert.strictEqual(errorCode(refused), "send_forbidden")
        yield* bob.socket.terminate
        yield* app.eventually(
          Effect.map(
            manage(app, "POST", `${name}/messages`, { type: "again" }),
            ({ body }) => at(body, "delivered") === 2
          ),
          "the dropped socket is not counted"
        )
        const large = yield* manage(app, "POST", `${name}/messages`, {
          type: "x",
          data: "x".repeat(16_383)
        })
        assert.strictEqual(large.status, 413)
      })
    )

    it.effect("DELETE closes a channel for its members and frees its name", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const name = `@${yield* uniqueName}`
        yield* manage(app, "PUT", name, {})
        const ada = yield* newPlayer(app)
        yield* ada.socket.request({ t: "channelJoin", channel: name })
        const deleted = yield* manage(app, "DELETE", name)
        assert.deepStrictEqual(deleted.body, { deleted: true })
        assert.strictEqual((yield* ada.socket.next("channel_closed"))["reason"], "deleted")
        for (const call of [
          manage(app, "GET", name),
          manage(app, "DELETE", name),
          manage(app, "POST", `${name}/messages`, { type: "x" }),
          manage(app, "POST", `${name}/moderate`, { op: "kick", playerId: ada.id }),
          manage(app, "GET", "Not%20A%20Name")
        ]) {
          const answer = yield* call
          assert.strictEqual(answer.status, 404)
          assert.strictEqual(at(answer.body, "error", "code"), "channel_not_found")
        }
        const again = yield* ada.socket.request({ t: "channelCreate", channel: name })
        assert.strictEqual(again["ok"], true)
      })
    )

    it.effect("PUT takes over a channel that a player has created, with its members", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const ada = yield* newPlayer(app)
        const created = yield* ada.socket.request({ t: "channelCreate" })
        const name = String(at(created, "data", "channel"))
        const taken = yield* manage(app, "PUT", encodeURIComponent(name), { send: "server" })
        assert.deepInclude(at(taken.body, "channel"), { managed: true, ownerId: null })
        assert.strictEqual(at(taken.body, "members", 0, "id"), ada.id)
        const changed = yield* ada.socket.next("channel_changed")
        assert.strictEqual(at(changed, "channel", "managed"), true)
        assert.strictEqual((yield* ada.socket.next("channel_self"))["canSend"], false)
        const act = { t: "channelModerate", channel: name, op: "kick", playerId: ada.id }
        assert.strictEqual(errorCode(yield* ada.socket.request(act)), "owner_only")
      })
    )

    it.effect("lets the server moderate players inside and outside the channel", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const name = yield* uniqueName
        yield* manage(app, "PUT", name, { join: "invited" })
        const ada = yield* newPlayer(app)
        const join = () => ada.socket.request({ t: "channelJoin", channel: name })
        assert.strictEqual(errorCode(yield* join()), "channel_forbidden")
        yield* moderate(app, name, { op: "invite", playerId: ada.id })
        yield* moderate(app, name, { op: "mute", playerId: ada.id })
        assert.strictEqual((yield* join())["ok"], true)
        assert.deepInclude(yield* ada.socket.next("channel_joined"), { canSend: false })
        const read = yield* manage(app, "GET", name)
        assert.deepStrictEqual(at(read.body, "muted"), [{ playerId: ada.id, until: null }])
        yield* moderate(app, name, { op: "unmute", playerId: ada.id })
        assert.strictEqual((yield* ada.socket.next("channel_self"))["canSend"], true)
        yield* assertMember(ada, name)
        yield* moderate(app, name, { op: "ban", playerId: ada.id, seconds: 60 })
        assert.strictEqual((yield* ada.socket.next("channel_closed"))["reason"], "banned")
        assert.strictEqual(errorCode(yield* join()), "channel_banned")
        const wrong = yield* manage(app, "POST", `${name}/moderate`, {
          op: "mute",
          playerId: ada.id,
          seconds: 86_401
        })
        assert.strictEqual(wrong.status, 400)
        assert.strictEqual(at(wrong.body, "error", "details", "issues", 0, "path"), "seconds")
      })
    )

    it.effect("refuses ids that are none, and names them", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const name = yield* uniqueName
        yield* manage(app, "PUT", name, { allow: [idOf(1)] })
        for (const id of ["", "ada", "pl_1", idOf(1).toUpperCase(), `${idOf(1)} `, "pl_*"]) {
          const changes = [
            [yield* manage(app, "PUT", name, { allow: [idOf(2), id] }), "allow[1]"],
            [yield* manage(app, "PUT", name, { speakers: [id] }), "speakers[0]"],
            [
              yield* manage(app, "POST", `${name}/moderate`, { op: "ban", playerId: id }),
              "playerId"
            ]
          ] as const
          for (const [answer, path] of changes) {
            assert.strictEqual(answer.status, 400, id)
            assert.strictEqual(at(answer.body, "error", "details", "issues", 0, "path"), path, id)
          }
        }
        const { body } = yield* manage(app, "GET", name)
        assert.deepInclude(body, { allow: [idOf(1)], speakers: [], banned: [] })
        const owner = yield* newPlayer(app)
        const made = yield* owner.socket.request({ t: "channelCreate" })
        const channel = at(made, "data", "channel")
        const act = { t: "channelModerate", channel, op: "ban", playerId: "nobody" }
        assert.strictEqual(errorCode(yield* owner.socket.request(act)), "invalid_frame")
      })
    )

    it.effect("answers 404 for a player who does not exist, and undoes actions all the same", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const name = yield* uniqueName
        yield* manage(app, "PUT", name, { allow: [idOf(1)] })
        const moderateUnknown = (op: string) =>
          manage(app, "POST", `${name}/moderate`, { op, playerId: idOf(1) })
        for (const op of ["invite", "allowSend", "mute", "kick", "ban"]) {
          const answer = yield* moderateUnknown(op)
          assert.strictEqual(answer.status, 404, op)
          assert.strictEqual(at(answer.body, "error", "code"), "player_not_found", op)
        }
        for (const op of ["uninvite", "disallowSend", "unmute", "unban"]) {
          assert.strictEqual((yield* moderateUnknown(op)).status, 200, op)
        }
        const { body } = yield* manage(app, "GET", name)
        assert.deepInclude(body, { allow: [], muted: [], banned: [] })
      })
    )

    it.effect("refuses more than a thousand entries in a list", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const name = yield* uniqueName
        const allow = Array.from({ length: 1000 }, (_, n) => idOf(n))
        yield* manage(app, "PUT", name, { allow })
        const { id } = yield* guest(app)
        const act = { op: "invite", playerId: id }
        const full = yield* manage(app, "POST", `${name}/moderate`, act)
        assert.strictEqual(full.status, 409)
        assert.strictEqual(at(full.body, "error", "code"), "channel_list_full")
        const tooMany = yield* manage(app, "PUT", name, { allow: [...allow, idOf(1000)] })
        assert.strictEqual(tooMany.status, 400)
      })
    )

    it.effect("admits only secret keys, each to the channels of its environment", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const name = yield* uniqueName
        yield* manage(app, "PUT", name, {})
        const wrong = yield* request(`${app.url}/v1/realtime/channels/${name}`, {
          headers: { "x-svc-key": app.publishableKey }
        })
        assert.strictEqual(wrong.status, 401)
        assert.strictEqual(at(wrong.body, "error", "code"), "invalid_key")
        const off = yield* manage(app.production, "GET", name)
        assert.deepStrictEqual(at(off.body, "error", "details"), {
          feature: "realtimeChannels",
          configPath: "features.realtimeChannels"
        })
        yield* configure(app.production, channelsOn)
        assert.strictEqual((yield* manage(app.production, "GET", name)).status, 404)
        const voice = yield* manage(app.production, "PUT", name, { voice: true })
        assert.strictEqual(voice.status, 403)
        assert.strictEqual(at(voice.body, "error", "details", "feature"), "voice")
        const ada = yield* goOnline(app.production, yield* guest(app.production))
        const create = yield* ada.socket.request({ t: "channelCreate", voice: { mode: "sfu" } })
        assert.strictEqual(errorCode(create), "feature_disabled")
        assert.strictEqual(at(create, "error", "details", "feature"), "voice")
        const room = yield* ada.socket.request({ t: "create", mode: "default" })
        assert.strictEqual(at(room, "error", "details", "feature"), "multiplayer")
      })
    )

    it.effect(
      "closes channels when the feature is off, and keeps those that the server manages",
      () =>
        Effect.gen(function* () {
          const app = yield* TestApp
          const both = { version: 1, features: { realtimeChannels: true, multiplayer: true } }
          yield* configure(app.production, both)
          const name = yield* uniqueName
          yield* manage(app.production, "PUT", name, { maxMembers: 7 })
          const ada = yield* goOnline(app.production, yield* guest(app.production))
          yield* ada.socket.request({ t: "channelJoin", channel: name })
          const made = yield* ada.socket.request({ t: "channelCreate" })
          yield* configure(app.production, { version: 1, features: { multiplayer: true } })
          const closed = [
            yield* ada.socket.next("channel_closed"),
            yield* ada.socket.next("channel_closed")
          ]
          assert.deepStrictEqual(
            closed.map((event) => event["reason"]),
            ["feature_disabled", "feature_disabled"]
          )
          const refused = yield* ada.socket.request({ t: "channelJoin", channel: name })
          assert.strictEqual(at(refused, "error", "details", "feature"), "realtimeChannels")
          yield* configure(app.production, both)
          yield* app.eventually(
            Effect.map(
              ada.socket.request({ t: "channelJoin", channel: name }),
              ({ ok }) => ok === true
            ),
            "the node knows that channels are on again"
          )
          const kept = yield* manage(app.production, "GET", name)
          assert.strictEqual(at(kept.body, "channel", "maxMembers"), 7)
          const gone = yield* ada.socket.request({
            t: "channelJoin",
            channel: at(made, "data", "channel")
          })
          assert.strictEqual(errorCode(gone), "channel_not_found")
        })
    )

    it.effect("removes a player who becomes a child from all channels but the server's", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* configure(app.production, channelsOn)
        const name = yield* uniqueName
        yield* manage(app.production, "PUT", name, {})
        const ada = yield* goOnline(app.production, yield* guest(app.production))
        const created = yield* ada.socket.request({ t: "channelCreate" })
        const channel = at(created, "data", "channel")
        yield* ada.socket.request({ t: "channelJoin", channel: name })
        yield* configure(app.production, { ...channelsOn, audience: "kids" })
        const closed = yield* ada.socket.next("channel_closed")
        assert.deepInclude(closed, { channel, reason: "kicked" })
        yield* assertMember(ada, name)
        for (const frame of [{ t: "channelCreate" }, { t: "channelJoin", channel }]) {
          assert.strictEqual(errorCode(yield* ada.socket.request(frame)), "channel_forbidden")
        }
        yield* configure(app.production, channelsOn)
        yield* app.eventually(
          Effect.map(ada.socket.request({ t: "channelCreate" }), ({ ok }) => ok === true),
          "the player is no child any more"
        )
      })
    )
  }
)

const RateLimitedLive = TestApp.layerWith({ SVC_THROTTLES: "on" }).pipe(
  Layer.provideMerge(DatabaseLive)
)

layer(RateLimitedLive, { timeout: "120 seconds", excludeTestServices: true })(
  "channel rate limits",
  (it) => {
    it.effect(
      "allows a key 600 messages and 300 management requests per minute",
      () =>
        Effect.gen(function* () {
          const app = yield* TestApp
          const name = yield* uniqueName
          yield* manage(app, "PUT", name, {})
          const assertLimit = Effect.fnUntraced(function* (
            [limit, times]: readonly [number, number],
            path: string,
            body: object
          ) {
            const responses = yield* Effect.forEach(
              Array.from({ length: times }),
              () => manage(app, "POST", `${name}/${path}`, body),
              { concurrency: 32 }
            )
            const refused = responses.filter(({ status }) => status === 429)
            assert.strictEqual(times - refused.length, limit)
            assert.isNotNull(refused[0]?.headers.get("retry-after"))
          })
          yield* assertLimit([600, 620], "messages", { type: "x" })
          // The PUT above was the first of the 300.
          yield* assertLimit([299, 320], "moderate", { op: "unban", playerId: idOf(1000) })
          const puts = yield* Effect.forEach(Array.from({ length: 50 }), () =>
            manage(app, "PUT", name, {})
          )
          assert.isTrue(
            puts.some(({ status }) => status === 429),
            "PUT counts as a management request"
          )
          assert.strictEqual((yield* manage(app, "GET", name)).status, 200)
        }),
      { tags: "long" }
    )
  }
)
