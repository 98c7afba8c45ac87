/** Native RPC on `/v1/rpc`: the same frames as typed procedures, for TypeScript game servers. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Layer, Queue, Stream } from "effect"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket"
import { RealtimeRpcs, type ServerEvent } from "#rpc/realtime"
import { TestApp } from "#testing/app"
import { at, guest, newPlayer } from "#testing/players"
import { logout, stealSession } from "../support/devices.ts"
import { ban } from "../support/moderation-calls.ts"
import { AppLive } from "../support/service.ts"

/** A client with its own connection, and the events it receives. */
const connect = Effect.fnUntraced(function* (url: string, headers: Record<string, string>) {
  const protocol = RpcClient.layerProtocolSocket().pipe(
    Layer.provide(Socket.layerWebSocket(`${url.replace("http", "ws")}/v1/rpc`)),
    Layer.provide(Socket.layerWebSocketConstructorGlobal),
    Layer.provide(RpcSerialization.layerJson)
  )
  const client = yield* Effect.provide(RpcClient.make(RealtimeRpcs), yield* Layer.build(protocol))
  const events = yield* Queue.unbounded<ServerEvent>()
  const open = yield* Deferred.make<void, unknown>()
  const ended = yield* Deferred.make<unknown>()
  yield* client.events(undefined, { headers }).pipe(
    Stream.runForEach((event) =>
      Effect.andThen(Queue.offer(events, event), Deferred.succeed(open, undefined))
    ),
    Effect.tapError((error) =>
      Effect.andThen(Deferred.fail(open, error), Deferred.succeed(ended, error))
    ),
    Effect.ignore,
    Effect.forkScoped
  )
  yield* Deferred.await(open)
  const next = <T extends ServerEvent["t"]>(t: T): Effect.Effect<ServerEvent> =>
    Effect.flatMap(Queue.take(events), (event) => (event.t === t ? Effect.succeed(event) : next(t)))
  return { client, next, ended: Deferred.await(ended) }
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("native rpc", (it) => {
  it.effect("a game server plays with players of `/v1/realtime` in one room", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app)
      const { client, next } = yield* connect(app.url, {
        "x-svc-key": app.publishableKey,
        authorization: `Bearer ${ada.accessToken}`
      })
      const room = yield* client.create({ mode: "default" })
      const joined = yield* next("room_joined")
      assert.strictEqual(at(joined, "room", "id"), room.roomId)
      const bob = yield* newPlayer(app)
      yield* bob.socket.request({ t: "join", code: room.code })
      yield* next("player_joined")
      yield* client.send({ type: "hi", data: { deep: [1, null] } })
      const message = yield* bob.socket.next("message")
      assert.deepStrictEqual(message["data"], { deep: [1, null] })
      yield* bob.socket.send({ t: "setState", patch: { x: 1 } })
      const state = yield* next("state")
      assert.deepStrictEqual(at(state, "patch"), { x: 1 })
    })
  )

  it.effect("delivers errors of native RPC as their classes", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app)
      const { client } = yield* connect(app.url, {
        "x-svc-key": app.publishableKey,
        authorization: `Bearer ${ada.accessToken}`
      })
      const nowhere = yield* Effect.flip(client.setState({ patch: { a: 1 } }))
      assert.strictEqual(nowhere._tag, "not_in_room")
      const mode = yield* Effect.flip(client.create({ mode: "nope" }))
      assert.strictEqual(mode._tag, "mode_not_found")
      yield* client.create({ mode: "default" })
      const twice = yield* Effect.flip(client.create({ mode: "default" }))
      assert.strictEqual(twice._tag, "already_in_room")
    })
  )

  it.effect("a secret key acts for the player it names, and must name one", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const bot = yield* guest(app, "Bot")
      const { client } = yield* connect(app.url, {
        "x-svc-key": app.secretKey,
        "x-svc-player": bot.id
      })
      const room = yield* client.create({ mode: "default" })
      assert.isString(room.code)
      const nobody = yield* Effect.flip(connect(app.url, { "x-svc-key": app.secretKey }))
      assert.strictEqual(at(nobody, "_tag"), "player_required")
      const stranger = yield* guest(app.production)
      const foreign = yield* Effect.flip(
        connect(app.url, { "x-svc-key": app.secretKey, "x-svc-player": stranger.id })
      )
      assert.strictEqual(at(foreign, "_tag"), "unauthorized")
    })
  )

  it.effect("a ban ends the events stream with its error, and refuses a new one", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app)
      const headers = {
        "x-svc-key": app.publishableKey,
        authorization: `Bearer ${ada.accessToken}`
      }
      const { ended } = yield* connect(app.url, headers)
      yield* ban(app, ada.id, { publicNote: "Rest." })
      const error = yield* ended
      assert.strictEqual(at(error, "_tag"), "player_banned")
      assert.strictEqual(at(error, "details", "note"), "Rest.")
      const again = yield* Effect.flip(connect(app.url, headers))
      assert.strictEqual(at(again, "_tag"), "player_banned")
    })
  )

  it.effect("a revoked session ends the events stream, a logout does not", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app)
      const own = yield* connect(app.url, {
        "x-svc-key": app.publishableKey,
        authorization: `Bearer ${ada.accessToken}`
      })
      const bob = yield* guest(app)
      const other = yield* connect(app.url, {
        "x-svc-key": app.publishableKey,
        authorization: `Bearer ${bob.accessToken}`
      })
      const bot = yield* guest(app)
      const acted = yield* connect(app.url, { "x-svc-key": app.secretKey, "x-svc-player": bot.id })
      yield* logout(app, bot)
      yield* logout(app, bob)
      yield* stealSession(app, ada)
      assert.strictEqual(at(yield* own.ended, "_tag"), "session_revoked")
      yield* acted.client.ping()
      yield* other.client.ping()
    })
  )

  it.effect("serves channels by native RPC, and delivers their errors as their classes", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const bot = yield* guest(app, "Bot")
      const { client, next } = yield* connect(app.url, {
        "x-svc-key": app.secretKey,
        "x-svc-player": bot.id
      })
      const { channel } = yield* client.channelCreate({ maxMembers: 2 })
      const joined = yield* next("channel_joined")
      assert.strictEqual(at(joined, "channel", "name"), channel)
      const ada = yield* newPlayer(app)
      yield* ada.socket.request({ t: "channelJoin", channel })
      yield* client.channelSend({ channel, type: "hi", data: { deep: [1, null] } })
      const message = yield* ada.socket.next("channel_message")
      assert.deepInclude(message, { from: bot.id, data: { deep: [1, null] } })
      const full = yield* Effect.flip(client.channelJoin({ channel: "nowhere" }))
      assert.strictEqual(full._tag, "channel_not_found")
      yield* client.channelModerate({ channel, op: "kick", playerId: ada.id })
      assert.strictEqual((yield* ada.socket.next("channel_closed"))["reason"], "kicked")
      yield* client.channelLeave({ channel })
      const out = yield* Effect.flip(client.channelSend({ channel, type: "x" }))
      assert.strictEqual(out._tag, "not_in_channel")
    })
  )

  it.effect("names the kind of a credential that is no key", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { accessToken } = yield* guest(app)
      for (const [key, name] of [
        ["kds_x", "a developer session (kds_)"],
        [accessToken, "an access token"]
      ] as const) {
        const wrong = yield* Effect.flip(connect(app.url, { "x-svc-key": key }))
        assert.strictEqual(at(wrong, "_tag"), "invalid_key")
        const needed = "a publishable key (pk_) or a secret key (sk_)"
        const message = `This is ${name}. This endpoint needs ${needed}.`
        assert.strictEqual(at(wrong, "message"), message)
      }
    })
  )

  it.effect("refuses procedures of a client without an events stream", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const wrong = yield* Effect.flip(connect(app.url, { "x-svc-key": "pk_unknown" }))
      assert.strictEqual(at(wrong, "_tag"), "invalid_key")
    })
  )
})
