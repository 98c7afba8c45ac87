/** Peer-to-peer rooms through the public interface. */
import { createHmac } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { roomLimits } from "#rpc/rooms/limits"
import { credentialSeconds } from "#server/features/peers/turn-servers"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer, type OnlinePlayer } from "#testing/players"
import { play } from "../../support/moderation-calls.ts"
import { openRoom } from "../../support/opened-room.ts"
import { AppLive, DatabaseLive } from "../../support/service.ts"

const secret = "shared-with-the-turn-server"
const turnUrls = ["turn:turn.example.com:3478", "turns:turn.example.com:5349?transport=tcp"]

const RelayedLive = TestApp.layerWith({
  SVC_TURN_URLS: ["stun:stun.example.com:3478", ...turnUrls].join(","),
  SVC_TURN_SECRET: secret
}).pipe(Layer.provide(DatabaseLive))

/** `mesh` hides addresses, `open` reveals them, and `plain` is not peer to peer. */
const modes = [
  { key: "mesh", minPlayers: 2, maxPlayers: 8, transport: "p2p", p2p: { maxPlayers: 2 } },
  { key: "open", minPlayers: 2, transport: "p2p", p2p: { relayOnly: false } },
  { key: "plain", minPlayers: 2 }
]

const configured = (document: object = {}) =>
  Effect.gen(function* () {
    const app = yield* TestApp
    const features = { multiplayer: true }
    yield* configure(app, { features, multiplayer: { modes }, ...document })
    return app
  })

/** Two players in a room of a mode. */
const pair = Effect.fnUntraced(function* (mode: string, document: object = {}) {
  const app = yield* configured(document)
  const ada = yield* newPlayer(app)
  const bob = yield* newPlayer(app)
  yield* openRoom([ada, bob], { mode })
  return { app, ada, bob }
})

const live = { timeout: "120 seconds", excludeTestServices: true } as const

layer(RelayedLive, live)("peer-to-peer rooms", (it) => {
  it.effect("describes the transport of rooms, and seats at most as many as the mesh allows", () =>
    Effect.gen(function* () {
      const { ada, app } = yield* pair("mesh")
      const joined = yield* ada.socket.next("room_joined")
      assert.strictEqual(at(joined, "room", "transport"), "p2p")
      assert.strictEqual(at(joined, "room", "maxPlayers"), 2)
      assert.deepStrictEqual(at(joined, "room", "p2p"), { maxPlayers: 2, relayOnly: true })
      const cleo = yield* newPlayer(app)
      const full = yield* cleo.socket.request({ t: "join", roomId: at(joined, "room", "id") })
      assert.strictEqual(at(full, "error", "code"), "p2p_room_full")
    })
  )

  it.effect("delivers signals to their addressee only", () =>
    Effect.gen(function* () {
      const { ada, bob } = yield* pair("open")
      const offer = { type: "offer", sdp: "v=0\r\n" }
      const signal = { t: "signal", to: bob.id, kind: "offer", data: offer, gen: 1 }
      const sent = yield* ada.socket.request(signal)
      assert.deepStrictEqual(sent["data"], { delivered: 1 })
      const received = yield* bob.socket.next("signal")
      const event = { t: "signal", from: ada.id, kind: "offer", data: offer, gen: 1 }
      assert.deepStrictEqual(received, event)
      yield* ada.socket.request({ t: "send", type: "last" })
      yield* bob.socket.next("message")
      assert.notInclude(
        ada.socket.received.map(({ t }) => t),
        "signal"
      )
    })
  )

  it.effect("refuses each invalid signal with its code", () =>
    Effect.gen(function* () {
      const { ada, bob } = yield* pair("open")
      const refusal = (frame: object) =>
        Effect.map(
          ada.socket.request({ t: "signal", to: bob.id, kind: "offer", ...frame }),
          (reply) => at(reply, "error", "code")
        )
      assert.strictEqual(yield* refusal({ to: "pl_nobody" }), "player_not_in_room")
      assert.strictEqual(yield* refusal({ kind: "hello" }), "invalid_frame")
      assert.strictEqual(yield* refusal({ gen: 0.5 }), "invalid_frame")
      assert.strictEqual(yield* refusal({ to: "" }), "invalid_frame")
      const limit = roomLimits.signalDataMaxBytes
      assert.isUndefined(yield* refusal({ data: "x".repeat(limit - 2) }))
      assert.strictEqual(yield* refusal({ data: "x".repeat(limit - 1) }), "payload_too_large")
      yield* ada.socket.request({ t: "leave" })
      assert.strictEqual(yield* refusal({}), "not_in_room")
      yield* ada.socket.request({ t: "create", mode: "plain" })
      assert.strictEqual(yield* refusal({}), "p2p_only")
      const servers = yield* ada.socket.request({ t: "iceServers" })
      assert.strictEqual(at(servers, "error", "code"), "p2p_only")
    })
  )

  it.effect("issues TURN credentials for an hour, in the form that coturn checks", () =>
    Effect.gen(function* () {
      const { ada, app } = yield* pair("mesh")
      const { data } = yield* ada.socket.request({ t: "iceServers" })
      assert.strictEqual(at(data, "iceTransportPolicy"), "relay")
      const servers = at(data, "iceServers")
      assert.lengthOf(Array.isArray(servers) ? servers : [], 1)
      assert.deepStrictEqual(at(servers, 0, "urls"), turnUrls)
      const username = String(at(servers, 0, "username"))
      const expiresAt = Date.parse(String(at(data, "expiresAt")))
      assert.strictEqual(username.split(":")[0], String(Math.floor(expiresAt / 1000)))
      assert.isTrue(username.endsWith(`.${ada.id}`), username)
      const now = yield* Clock.currentTimeMillis
      assert.isAtMost(Math.abs(expiresAt - now - credentialSeconds * 1000), 60_000)
      const credential = createHmac("sha1", secret).update(username).digest("base64")
      assert.strictEqual(at(servers, 0, "credential"), credential)
      const nowhere = yield* newPlayer(app)
      const refused = yield* nowhere.socket.request({ t: "iceServers" })
      assert.strictEqual(at(refused, "error", "code"), "not_in_room")
    })
  )

  it.effect("offers STUN servers, too, in rooms that may reveal addresses", () =>
    Effect.gen(function* () {
      const { ada } = yield* pair("open")
      const { data } = yield* ada.socket.request({ t: "iceServers" })
      assert.strictEqual(at(data, "iceTransportPolicy"), "all")
      assert.deepStrictEqual(at(data, "iceServers", 0), { urls: ["stun:stun.example.com:3478"] })
      assert.deepStrictEqual(at(data, "iceServers", 1, "urls"), turnUrls)
    })
  )

  it.effect("always relays players under 13", () =>
    Effect.gen(function* () {
      const { ada, bob } = yield* pair("open", { audience: "mixed" })
      const { data } = yield* ada.socket.request({ t: "iceServers" })
      assert.strictEqual(at(data, "iceTransportPolicy"), "relay")
      const candidate = "candidate:1 1 udp 1 192.168.1.7 5 typ host"
      const hidden = yield* ada.socket.request({
        t: "signal",
        to: bob.id,
        kind: "candidate",
        data: { candidate }
      })
      assert.deepStrictEqual(hidden["data"], { delivered: 0 })
    })
  )

  it.effect("relays a seated player from the moment it becomes a child", () =>
    Effect.gen(function* () {
      const { ada, app, bob } = yield* pair("open")
      const policyOf = ({ socket }: OnlinePlayer) =>
        Effect.map(socket.request({ t: "iceServers" }), (reply) =>
          at(reply, "data", "iceTransportPolicy")
        )
      const isRelayed = (player: OnlinePlayer) =>
        app.eventually(
          Effect.map(policyOf(player), (policy) => policy === "relay"),
          "the player is relayed"
        )
      assert.strictEqual(yield* policyOf(ada), "all")
      yield* play(app, ada, "PUT", "social/age", { band: "child" })
      yield* isRelayed(ada)
      assert.strictEqual(yield* policyOf(bob), "all")
      const data = { candidate: "candidate:1 1 udp 1 192.168.1.7 5 typ host" }
      const signal = { t: "signal", to: ada.id, kind: "candidate", data }
      assert.deepStrictEqual((yield* bob.socket.request(signal))["data"], { delivered: 0 })
      yield* configured({ audience: "kids" })
      yield* isRelayed(bob)
    })
  )
})

layer(RelayedLive, live)("a player who has left a peer-to-peer room", (it) => {
  it.effect("refuses ICE servers with `not_in_room` to a player who has left", () =>
    Effect.gen(function* () {
      const app = yield* configured()
      const ada = yield* newPlayer(app)
      yield* ada.socket.request({ t: "create", mode: "mesh" })
      yield* ada.socket.send({ t: "leave" })
      const refused = yield* ada.socket.request({ t: "iceServers" })
      assert.strictEqual(at(refused, "error", "code"), "not_in_room")
    })
  )
})

layer(AppLive, live)("peer-to-peer rooms without a TURN server", (it) => {
  it.effect("replies `turn_unavailable` only if a relay is required", () =>
    Effect.gen(function* () {
      const { ada } = yield* pair("mesh")
      const refused = yield* ada.socket.request({ t: "iceServers" })
      assert.strictEqual(at(refused, "error", "code"), "turn_unavailable")
      const { ada: dan } = yield* pair("open")
      const { data } = yield* dan.socket.request({ t: "iceServers" })
      assert.deepStrictEqual(at(data, "iceServers"), [])
      assert.strictEqual(at(data, "iceTransportPolicy"), "all")
    })
  )
})
