/** `/v1/realtime`: how sockets open, how bad input is handled, and how they close. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { dataDepthMax } from "#rpc/json"
import { TestApp } from "#testing/app"
import { at, configure, goOnline, guest, newPlayer, request } from "#testing/players"
import { connectSocket } from "#testing/socket-client"
import { AppLive } from "../support/service.ts"
import { openRoom } from "../support/opened-room.ts"

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("realtime", (it) => {
  it.effect("names the player and the service's time in the welcome", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const player = yield* guest(app)
      const { socket } = yield* app.online(player)
      const welcome = yield* socket.next("welcome")
      assert.strictEqual(welcome["playerId"], player.id)
      assert.strictEqual(welcome["heartbeatSeconds"], 20)
      assert.deepStrictEqual(welcome["rooms"], [])
      assert.isNumber(welcome["serverTime"])
      assert.match(String(welcome["tokenExpiresAt"]), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
      const pong = yield* socket.request({ t: "ping" })
      assert.isNumber(at(pong, "data", "at"))
    })
  )

  it.effect("says why it refuses a first frame, and names the kind of a wrong key", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { accessToken: token } = yield* guest(app)
      const socket = yield* connectSocket(app.socketUrl)
      yield* socket.send({ t: "auth", key: app.secretKey, token })
      const warning = yield* socket.next("warn")
      assert.strictEqual(warning["code"], "invalid_key")
      assert.strictEqual(
        warning["message"],
        "This is a secret key (sk_). This endpoint needs a publishable key (pk_)."
      )
      assert.deepStrictEqual(yield* socket.closed, { code: 4001, reason: "invalid_key" })
    })
  )

  it.effect("closes a socket with 4001 after a first frame that is not a valid `auth`", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { accessToken } = yield* guest(app)
      const { accessToken: foreign } = yield* guest(app.production)
      const key = app.publishableKey
      const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.e30.`
      const frames: ReadonlyArray<string> = [
        "not json",
        "[]",
        JSON.stringify({ t: "create", mode: "default" }),
        JSON.stringify({ t: "auth", key }),
        JSON.stringify({ t: "auth", token: accessToken }),
        JSON.stringify({ t: "auth", key: "pk_unknown", token: accessToken }),
        JSON.stringify({ t: "auth", key: app.secretKey, token: accessToken }),
        JSON.stringify({ t: "auth", key, token: foreign }),
        JSON.stringify({ t: "auth", key: app.production.publishableKey, token: accessToken }),
        JSON.stringify({ t: "auth", key, token: `${accessToken}x` }),
        JSON.stringify({ t: "auth", key, token: none }),
        JSON.stringify({ t: "auth", key, token: 7 })
      ]
      yield* Effect.forEach(
        frames,
        (frame) =>
          Effect.gen(function* () {
            const socket = yield* connectSocket(app.socketUrl)
            yield* socket.sendText(frame)
            const { code } = yield* socket.closed
            assert.strictEqual(code, 4001, frame)
          }),
        { concurrency: 4 }
      )
    })
  )

  it.effect("replies to invalid frames with an error, and keeps the socket open", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { socket } = yield* newPlayer(app)
      const cases: ReadonlyArray<readonly [object, string]> = [
        [{ t: "fly" }, "unknown_type"],
        [{ t: "create" }, "invalid_frame"],
        [{ t: "create", mode: 7 }, "invalid_frame"],
        [{ t: "create", mode: "default", maxPlayers: 1.5 }, "invalid_frame"],
        [{ t: "create", mode: "default", maxPlayers: 65 }, "invalid_frame"],
        [{ t: "create", mode: "default", code: "no_way" }, "invalid_frame"],
        [{ t: "create", mode: "default", metadata: "x" }, "invalid_frame"],
        [{ t: "create", mode: "default", metadata: { a: "x".repeat(5000) } }, "payload_too_large"],
        [{ t: "join" }, "invalid_frame"],
        [{ t: "join", roomId: "a", code: "b" }, "invalid_frame"],
        [{ t: "send", type: "" }, "invalid_frame"],
        [{ t: "send", type: "x".repeat(65) }, "invalid_frame"],
        [{ t: "send", type: "x", to: "somebody" }, "invalid_frame"],
        [{ t: "setState", patch: [] }, "invalid_frame"],
        [{ t: "lock", locked: "yes" }, "invalid_frame"],
        [{ t: "send", type: "x" }, "not_in_room"],
        [{ t: "setState", patch: {} }, "not_in_room"],
        [{ t: "leave" }, "not_in_room"],
        [{ t: "cancelMatch" }, "not_matching"]
      ]
      for (const [frame, code] of cases) {
        const reply = yield* socket.request(frame)
        assert.strictEqual(at(reply, "error", "code"), code, JSON.stringify(frame))
        assert.match(String(at(reply, "error", "message")), /^\w/, JSON.stringify(frame))
      }
      yield* socket.sendText("{")
      const warned = yield* socket.next("warn")
      assert.strictEqual(warned["code"], "invalid_frame")
      yield* socket.send({ t: "send", type: "x" })
      const unasked = yield* socket.next("warn")
      assert.strictEqual(unasked["code"], "not_in_room")
    })
  )

  it.effect("refuses prototype keys in patches at any depth, and pollutes no prototype", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { socket } = yield* newPlayer(app)
      yield* socket.request({ t: "create", mode: "default" })
      const patches = [
        '{"__proto__":{"polluted":1}}',
        '{"a":{"__proto__":{"polluted":1}}}',
        '{"a":[{"constructor":{"prototype":{"polluted":1}}}]}',
        '{"prototype":1}',
        '{"a":{"b":1e400}}'
      ]
      for (const [index, patch] of patches.entries()) {
        for (const t of ["setState", "setMyState"]) {
          yield* socket.sendText(`{"t":"${t}","rid":"${t}${index}","patch":${patch}}`)
          const reply = yield* socket.next("reply", (frame) => frame["rid"] === `${t}${index}`)
          assert.strictEqual(at(reply, "error", "code"), "invalid_frame", patch)
        }
      }
      assert.isUndefined(Reflect.get({}, "polluted"))
    })
  )

  it.effect("refuses data that is nested too deeply, and delivers the other messages", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      yield* openRoom([ada, bob])
      const nested = (levels: number) => `${"[".repeat(levels)}1${"]".repeat(levels)}`
      for (const [rid, levels, code] of [
        ["fits", dataDepthMax, undefined],
        ["deep", dataDepthMax + 1, "invalid_frame"],
        ["deeper", 8000, "invalid_frame"]
      ] as const) {
        yield* ada.socket.sendText(
          `{"t":"send","rid":"${rid}","type":"x","data":${nested(levels)}}`
        )
        const reply = yield* ada.socket.next("reply", (frame) => frame["rid"] === rid)
        assert.strictEqual(at(reply, "error", "code"), code, rid)
      }
      yield* ada.socket.send({ t: "send", type: "last" })
      const types = [yield* bob.socket.next("message"), yield* bob.socket.next("message")]
      assert.deepStrictEqual(
        types.map((frame) => frame["type"]),
        ["x", "last"]
      )
    })
  )

  it.effect("enforces the limits of message data, state and keys to the byte", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      yield* ada.socket.request({ t: "create", mode: "default" })
      const fits = yield* ada.socket.request({ t: "send", type: "x", data: "a".repeat(16_382) })
      assert.strictEqual(at(fits, "ok"), true)
      const large = yield* ada.socket.request({ t: "send", type: "x", data: "a".repeat(16_383) })
      assert.strictEqual(at(large, "error", "code"), "payload_too_large")
      const bytes = yield* ada.socket.request({ t: "send", type: "x", data: "é".repeat(8_192) })
      assert.strictEqual(at(bytes, "error", "code"), "payload_too_large")
      const keys = Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`k${i}`, i]))
      const many = yield* ada.socket.request({ t: "setState", patch: keys })
      assert.strictEqual(at(many, "error", "code"), "state_too_large")
      const long = yield* ada.socket.request({ t: "setState", patch: { ["k".repeat(65)]: 1 } })
      assert.strictEqual(at(long, "error", "code"), "state_too_large")
      const mine = yield* ada.socket.request({ t: "setMyState", patch: { a: "a".repeat(17_000) } })
      assert.strictEqual(at(mine, "error", "code"), "state_too_large")
      const nothing = ada.socket.received.filter((frame) => frame.t === "state")
      assert.lengthOf(nothing, 0)
    })
  )

  it.effect(
    "closes a socket with 1003 after a binary frame, and with 1009 after a frame over 64 KiB",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const ada = yield* newPlayer(app)
        ada.socket.ws.send(Buffer.from([1, 2, 3]))
        assert.strictEqual((yield* ada.socket.closed).code, 1003)
        const bob = yield* newPlayer(app)
        yield* bob.socket.sendText("x".repeat(70_000))
        assert.strictEqual((yield* bob.socket.closed).code, 1009)
      })
  )

  it.effect("a newer connection of a player replaces the older one and finds its seat", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const { roomId } = yield* openRoom([ada])
      const newer = yield* app.online(ada)
      const welcome = yield* newer.socket.next("welcome")
      const closed = yield* ada.socket.closed
      assert.deepStrictEqual([closed.code, closed.reason], [4004, "replaced"])
      assert.strictEqual(at(welcome, "rooms", 0, "roomId"), roomId)
      const resumed = yield* newer.socket.request({ t: "resume", roomId })
      assert.strictEqual(at(resumed, "ok"), true)
    })
  )

  it.effect("warns an abusive sender, then closes it with 4029; no other player notices", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      yield* openRoom([ada, bob])
      for (let i = 0; i < 1000; i++) yield* bob.socket.send({ t: "setMyState", patch: { i } })
      const closed = yield* bob.socket.closed
      assert.strictEqual(closed.code, 4029)
      assert.isTrue(bob.socket.received.some((frame) => frame["code"] === "rate_limited"))
      const still = yield* ada.socket.request({ t: "ping" })
      assert.strictEqual(at(still, "ok"), true)
    })
  )

  it.effect(
    "closes a client that never reads, and its room continues",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const ada = yield* newPlayer(app)
        const bob = yield* newPlayer(app)
        yield* openRoom([ada, bob])
        bob.socket.ws.pause()
        const data = "x".repeat(16_000)
        yield* app.eventually(
          Effect.gen(function* () {
            yield* ada.socket.send({ t: "send", type: "flood", data })
            return ada.socket.received.some((frame) => frame.t === "player_disconnected")
          }),
          "the slow reader is dropped"
        )
        const still = yield* ada.socket.request({ t: "setState", patch: { on: true } })
        assert.strictEqual(at(still, "ok"), true)
      }),
    { tags: "long" }
  )

  it.effect("renews a token on the open socket; the token of another player closes it", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const renewed = yield* request(`${app.url}/v1/auth/refresh`, {
        headers: { "x-svc-key": app.publishableKey },
        body: { refreshToken: ada.refreshToken }
      })
      const reply = yield* ada.socket.request({ t: "auth", token: at(renewed.body, "accessToken") })
      assert.strictEqual(at(reply, "ok"), true)
      yield* ada.socket.next("welcome")
      const stranger = yield* guest(app)
      yield* ada.socket.send({ t: "auth", token: stranger.accessToken })
      assert.strictEqual((yield* ada.socket.closed).code, 4001)
    })
  )

  it.effect(
    "closes a socket with 4003 for origins outside web.allowedOrigins; a wildcard admits subdomains",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const { accessToken } = yield* guest(app.production)
        yield* configure(app.production, {
          version: 1,
          features: { multiplayer: true },
          web: { allowedOrigins: ["https://*.game.example"] }
        })
        const open = (origin: string) =>
          Effect.gen(function* () {
            const socket = yield* connectSocket(app.socketUrl, { origin })
            const key = app.production.publishableKey
            yield* socket.send({ t: "auth", key, token: accessToken })
            return socket
          })
        const evil = yield* open("https://game.example.evil")
        const closed = yield* evil.closed
        assert.deepStrictEqual([closed.code, closed.reason], [4003, "origin_not_allowed"])
        const good = yield* open("https://play.game.example")
        yield* good.next("welcome")
      })
  )

  it.effect("closes rooms, then sockets, when multiplayer is turned off", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const on = { version: 1, features: { multiplayer: true, realtimeChannels: true } }
      yield* configure(app.production, on)
      const player = yield* guest(app.production)
      const ada = yield* goOnline(app.production, player)
      yield* ada.socket.request({ t: "create", mode: "default" })
      const away = yield* guest(app.production)
      const left = yield* goOnline(app.production, away)
      yield* left.socket.request({ t: "create", mode: "default" })
      yield* left.socket.terminate
      yield* configure(app.production, { version: 1, features: { realtimeChannels: true } })
      const closed = yield* ada.socket.next("room_closed")
      assert.strictEqual(closed["reason"], "feature_disabled")
      const refused = yield* ada.socket.request({ t: "create", mode: "default" })
      assert.strictEqual(at(refused, "error", "code"), "feature_disabled")
      assert.deepStrictEqual(at(refused, "error", "details"), {
        feature: "multiplayer",
        configPath: "features.multiplayer"
      })
      const back = yield* goOnline(app.production, away)
      assert.deepStrictEqual(back.socket.received[0]?.["rooms"], [])
      yield* configure(app.production, { version: 1 })
      const over = yield* ada.socket.closed
      assert.deepStrictEqual([over.code, over.reason], [4003, "feature_disabled"])
      const late = yield* connectSocket(app.socketUrl)
      const key = app.production.publishableKey
      yield* late.send({ t: "auth", key, token: player.accessToken })
      assert.strictEqual((yield* late.closed).code, 4003)
    })
  )

  it.effect("admits twenty anonymous sockets per address, which can use no room", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const open = Effect.gen(function* () {
        const socket = yield* connectSocket(app.socketUrl)
        yield* socket.send({ t: "auth", key: app.publishableKey, anon: true })
        return socket
      })
      const [first, ...others] = yield* Effect.all(Array.from({ length: 20 }, () => open))
      if (first === undefined) return assert.fail("no socket")
      const welcome = yield* first.next("welcome")
      assert.isNull(welcome["playerId"])
      const refused = yield* first.request({ t: "create", mode: "default" })
      assert.strictEqual(at(refused, "error", "code"), "player_required")
      yield* Effect.forEach(others, (socket) => socket.next("welcome"), { discard: true })
      const oneMore = yield* open
      assert.strictEqual((yield* oneMore.closed).code, 4029)
    })
  )

  it.effect("replies to a plain GET of the realtime endpoint that it must upgrade", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const answer = yield* request(`${app.url}/v1/realtime`)
      assert.strictEqual(answer.status, 426)
      assert.strictEqual(at(answer.body, "error", "code"), "upgrade_required")
    })
  )
})
