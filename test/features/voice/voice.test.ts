/** Peer-to-peer voice calls, and who may be in a call, through the public interface. */
import { createHmac } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { channelLimits } from "#rpc/channels/limits"
import { poolLayer } from "#sql/database"
import { signalDataMaxBytes } from "#server/features/voice/frames"
import { credentialSeconds } from "#server/features/voice/service"
import { voiceFrames } from "#server/links/channel-memberships"
import { TestApp, TestDatabase } from "#testing/app"
import { at, authenticate, configure, newPlayer, type OnlinePlayer } from "#testing/players"
import { connectAnonymously, errorCode, manage, moderate } from "../../support/channel-calls.ts"
import { play } from "../../support/moderation-calls.ts"
import { operate } from "../../support/operate.ts"
import { AppLive, DatabaseLive } from "../../support/service.ts"
import {
  awaitCall,
  enableVoice,
  joinCall,
  newMember,
  voiceChannel
} from "../../support/voice-calls.ts"

const secret = "shared-with-the-turn-server"
const turnUrl = "turn:turn.example.com:3478"

const Rows = Layer.unwrap(
  Effect.map(TestDatabase, ({ url }) => poolLayer({ url: Redacted.make(url), connections: 1 }))
)

const RelayedLive = TestApp.layerWith({ SVC_TURN_URLS: turnUrl, SVC_TURN_SECRET: secret }).pipe(
  Layer.provideMerge(Rows),
  Layer.provideMerge(DatabaseLive)
)

const live = { timeout: "120 seconds", excludeTestServices: true } as const

/** A peer-to-peer channel with these many members, all in its call. */
const callOf = Effect.fnUntraced(function* (size: number, settings: object = {}) {
  const app = yield* TestApp
  yield* enableVoice(app)
  const channel = yield* voiceChannel(app, { voice: true, maxMembers: 8, ...settings })
  const players: Array<OnlinePlayer> = []
  for (let i = 0; i < size; i++) {
    const player = yield* newMember(app, channel)
    yield* joinCall(player, channel)
    players.push(player)
  }
  const [ada = yield* Effect.die("nobody"), bob = ada] = players
  for (const player of players) yield* awaitCall(player, players)
  return { app, channel, players, ada, bob }
})

const refusal = ({ socket }: OnlinePlayer, frame: object) =>
  Effect.map(socket.request(frame), errorCode)

const candidate = (type: string, address: string) =>
  `candidate:1 1 udp 1 ${address} 5000 typ ${type} raddr 192.168.7.7 rport 9`

layer(RelayedLive, live)("peer-to-peer calls", (it) => {
  it.effect("returns a session and TURN credentials of ten minutes", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* enableVoice(app)
      const channel = yield* voiceChannel(app, { voice: true, maxMembers: 8 })
      const ada = yield* newMember(app, channel)
      const before = yield* Clock.currentTimeMillis
      const joined = yield* joinCall(ada, channel)
      assert.deepInclude(joined, { mode: "p2p", relayOnly: true, iceTransportPolicy: "relay" })
      assert.isString(at(joined, "session"))
      const expiresAt = Date.parse(String(at(joined, "expiresAt")))
      assert.closeTo(expiresAt - before, credentialSeconds * 1000, 30_000)
      const username = String(at(joined, "iceServers", 0, "username"))
      assert.match(username, new RegExp(`^\\d+:.+\\.${ada.id}$`))
      const credential = createHmac("sha1", secret).update(username).digest("base64")
      assert.deepStrictEqual(at(joined, "iceServers"), [{ urls: [turnUrl], username, credential }])
      const state = yield* awaitCall(ada, [ada])
      const { id } = ada
      const session = at(joined, "session")
      assert.deepStrictEqual(state["members"], [{ id, session, canSpeak: true, publishing: true }])
    })
  )

  it.effect("delivers a signal to one member, without addresses that are no relays", () =>
    Effect.gen(function* () {
      const { ada, bob, channel, players } = yield* callOf(3)
      const send = (data: unknown, kind = "candidate") =>
        ada.socket.request({ t: "voiceSignal", channel, to: bob.id, kind, data, gen: 7 })
      const host = yield* send({ candidate: candidate("host", "10.1.2.3"), sdpMid: "0" })
      assert.deepStrictEqual(host["data"], { delivered: 1 })
      yield* send({ candidate: candidate("relay", "203.0.113.9"), sdpMid: "0" })
      const relay = yield* bob.socket.next("voice_signal")
      assert.deepInclude(relay, { channel, from: ada.id, kind: "candidate", gen: 7 })
      assert.include(String(at(relay, "data", "candidate")), "203.0.113.9")
      assert.notInclude(JSON.stringify(relay), "192.168.7.7")
      const sdp = `v=0\r\no=- 1 1 IN IP4 10.1.2.3\r\na=${candidate("srflx", "198.51.100.7")}\r\n`
      yield* send({ sdp }, "offer")
      const offer = yield* bob.socket.next("voice_signal")
      assert.notMatch(JSON.stringify(offer), /10\.1\.2\.3|198\.51\.100\.7|192\.168/)
      const [, , cat] = players
      assert.isEmpty(cat?.socket.received.filter(({ t }) => t === "voice_signal"))
      const nobody = yield* ada.socket.request({
        t: "voiceSignal",
        channel,
        to: "pl_nobody",
        kind: "restart"
      })
      assert.deepStrictEqual(nobody["data"], { delivered: 0 })
    })
  )

  it.effect("delivers all addresses where nobody needs a relay", () =>
    Effect.gen(function* () {
      const { ada, bob, channel } = yield* callOf(2, { voice: { mode: "p2p", relayOnly: false } })
      const data = { candidate: candidate("host", "10.1.2.3"), sdpMid: "0" }
      yield* ada.socket.request({ t: "voiceSignal", channel, to: bob.id, kind: "candidate", data })
      assert.deepStrictEqual((yield* bob.socket.next("voice_signal"))["data"], data)
    })
  )

  it.effect("relays a child, also where the others need no relay", () =>
    Effect.gen(function* () {
      const { ada, app, channel } = yield* callOf(1, { voice: { mode: "p2p", relayOnly: false } })
      const bob = yield* newMember(app, channel)
      yield* play(app, bob, "PUT", "social/age", { band: "child" })
      // A join during the change may be refused.
      yield* app.eventually(
        Effect.map(
          bob.socket.request({ t: "voiceJoin", channel }),
          (reply) => reply["ok"] === true && at(reply["data"], "relayOnly") === true
        ),
        "bob is relayed"
      )
      assert.strictEqual(at(yield* joinCall(bob, channel), "iceTransportPolicy"), "relay")
      yield* awaitCall(ada, [ada, bob])
      for (const [from, to] of [
        [ada, bob],
        [bob, ada]
      ] as const) {
        const sdp = `v=0\r\na=${candidate("host", "10.1.2.3")}\r\n`
        const signal = { t: "voiceSignal", channel, to: to.id, kind: "offer", data: { sdp } }
        yield* from.socket.request(signal)
        assert.notInclude(JSON.stringify(yield* to.socket.next("voice_signal")), "10.1.2.3")
      }
    })
  )

  it.effect("moves a player who becomes a child within a direct call to a relay at once", () =>
    Effect.gen(function* () {
      const direct = { voice: { mode: "p2p", relayOnly: false } }
      const { ada, app, bob, channel } = yield* callOf(2, direct)
      const relayed = yield* voiceChannel(app, { voice: true, maxMembers: 8 })
      yield* bob.socket.request({ t: "channelJoin", channel: relayed })
      yield* joinCall(bob, relayed)
      const closed = { t: "voice_closed", channel, reason: "unavailable", retryAfterMs: 0 }
      yield* play(app, bob, "PUT", "social/age", { band: "child" })
      assert.deepStrictEqual(yield* bob.socket.next("voice_closed"), closed)
      yield* awaitCall(ada, [ada])
      const back = yield* joinCall(bob, channel)
      assert.deepInclude(back, { relayOnly: true, iceTransportPolicy: "relay" })
      yield* awaitCall(ada, [ada, bob])
      const data = { candidate: candidate("host", "10.1.2.3"), sdpMid: "0" }
      const signal = { t: "voiceSignal", channel, to: ada.id, kind: "candidate", data }
      yield* bob.socket.request(signal)
      // The next one that arrives is the relay: the other was removed.
      const relay = { candidate: candidate("relay", "203.0.113.9"), sdpMid: "0" }
      yield* bob.socket.request({ ...signal, data: relay })
      assert.include(JSON.stringify(yield* ada.socket.next("voice_signal")), "203.0.113.9")
      // The same for all when the game is for children.
      yield* enableVoice(app, { audience: "kids" })
      assert.deepStrictEqual(yield* ada.socket.next("voice_closed"), closed)
      assert.deepInclude(yield* joinCall(ada, channel), { relayOnly: true })
      // Who was relayed already, here and in the other call, stays.
      yield* awaitCall(bob, [ada, bob])
      assert.lengthOf(
        bob.socket.received.filter(({ t }) => t === "voice_closed"),
        1
      )
      yield* enableVoice(app)
    })
  )

  it.effect("removes whom the channel kicks or bans, and says who may speak", () =>
    Effect.gen(function* () {
      const { ada, app, bob, channel, players } = yield* callOf(3)
      const [, , cat = ada] = players
      yield* moderate(app, channel, { op: "mute", playerId: bob.id, seconds: 60 })
      const muted = yield* ada.socket.next("voice_state", (state) =>
        JSON.stringify(state).includes('"canSpeak":false')
      )
      assert.deepStrictEqual(
        players.map((_, i) => [at(muted, "members", i, "id"), at(muted, "members", i, "canSpeak")]),
        [
          [ada.id, true],
          [bob.id, false],
          [cat.id, true]
        ]
      )
      yield* moderate(app, channel, { op: "ban", playerId: bob.id })
      yield* awaitCall(ada, [ada, cat])
      assert.strictEqual(yield* refusal(bob, { t: "voiceJoin", channel }), "not_in_channel")
      const signal = { t: "voiceSignal", channel, to: ada.id, kind: "restart" }
      assert.strictEqual(yield* refusal(bob, signal), "not_in_channel")
      yield* moderate(app, channel, { op: "kick", playerId: cat.id })
      yield* awaitCall(ada, [ada])
    })
  )

  it.effect("keeps a session over a new connection, and replaces it without its id", () =>
    Effect.gen(function* () {
      const { ada, app, bob, channel } = yield* callOf(2)
      const state = bob.socket.received.findLast(({ t }) => t === "voice_state")
      const session = at(state, "members", 0, "session")
      yield* ada.socket.terminate
      const back = yield* authenticate(app, ada)
      yield* back.socket.next("welcome")
      yield* back.socket.request({ t: "channelJoin", channel })
      assert.strictEqual(at(yield* joinCall(back, channel, { session }), "session"), session)
      yield* awaitCall(back, [ada, bob])
      const fresh = at(yield* joinCall(back, channel), "session")
      assert.notStrictEqual(fresh, session)
      yield* bob.socket.next("voice_state", (list) => JSON.stringify(list).includes(String(fresh)))
    })
  )

  it.effect("refuses a change of voice during a call, and a call beyond eight", () =>
    Effect.gen(function* () {
      const { app, channel } = yield* callOf(channelLimits.voicePeersMax)
      const sfu = yield* manage(app, "PUT", channel, { voice: { mode: "sfu" } })
      assert.strictEqual(sfu.status, 409)
      assert.strictEqual(at(sfu.body, "error", "code"), "voice_in_use")
      const wide = yield* manage(app, "PUT", channel, { maxMembers: 9 })
      assert.strictEqual(at(wide.body, "error", "code"), "voice_too_large")
    })
  )

  it.effect(
    "changes the voice setting of a channel after its call, and refuses calls once either is removed",
    () =>
      Effect.gen(function* () {
        const { ada, app, bob, channel } = yield* callOf(2)
        yield* ada.socket.request({ t: "voiceLeave", channel })
        yield* awaitCall(bob, [bob])
        yield* bob.socket.request({ t: "voiceLeave", channel })
        const none = yield* manage(app, "PUT", channel, { voice: null })
        assert.strictEqual(none.status, 200, JSON.stringify(none.body))
        assert.strictEqual(yield* refusal(ada, { t: "voiceJoin", channel }), "voice_disabled")
        yield* manage(app, "DELETE", channel)
        yield* ada.socket.next("channel_closed")
        assert.strictEqual(yield* refusal(ada, { t: "voiceJoin", channel }), "not_in_channel")
      })
  )

  it.effect("ends a call under way for all its members when its channel is deleted", () =>
    Effect.gen(function* () {
      const { ada, app, bob, channel, players } = yield* callOf(2)
      const state = ada.socket.received.findLast(({ t }) => t === "voice_state")
      const session = at(state, "members", 0, "session")
      assert.strictEqual((yield* manage(app, "DELETE", channel)).status, 200)
      for (const player of players) {
        const closed = { t: "channel_closed", channel, reason: "deleted" }
        assert.deepStrictEqual(yield* player.socket.next("channel_closed"), closed)
        const to = player === ada ? bob : ada
        const signal = { t: "voiceSignal", channel, to: to.id, kind: "restart" }
        assert.strictEqual(yield* refusal(player, signal), "not_in_channel")
        assert.strictEqual(yield* refusal(player, { t: "voiceJoin", channel }), "not_in_channel")
      }
      // A new channel of that name has a call of its own, in which nobody is.
      yield* manage(app, "PUT", channel, { voice: true, maxMembers: 8 })
      yield* ada.socket.request({ t: "channelJoin", channel })
      assert.notStrictEqual(at(yield* joinCall(ada, channel, { session }), "session"), session)
      yield* awaitCall(ada, [ada])
      assert.isEmpty(bob.socket.received.filter(({ t }) => t === "voice_closed"))
    })
  )

  it.effect("limits the frames of a connection to a call", () =>
    Effect.gen(function* () {
      const { ada, bob, channel } = yield* callOf(2)
      const signal = { t: "voiceSignal", channel, to: bob.id, kind: "restart" }
      for (let i = 0; i < voiceFrames.framesBurst; i++) yield* ada.socket.send(signal)
      assert.strictEqual(yield* refusal(ada, signal), "rate_limited")
      const large = { ...signal, data: "x".repeat(signalDataMaxBytes) }
      assert.strictEqual(yield* refusal(bob, { ...large, to: ada.id }), "payload_too_large")
    })
  )
})

layer(RelayedLive, live)("voice of an environment", (it) => {
  it.effect("refuses calls without the feature, and ends them when it is turned off", () =>
    Effect.gen(function* () {
      const { ada, app, channel } = yield* callOf(1)
      yield* configure(app, { features: { realtimeChannels: true } })
      assert.deepInclude(yield* ada.socket.next("voice_closed"), { channel, reason: "unavailable" })
      assert.strictEqual(yield* refusal(ada, { t: "voiceJoin", channel }), "feature_disabled")
    })
  )

  it.effect(
    "ends calls while the operator suspends voice, and leaves audit entries",
    () =>
      Effect.gen(function* () {
        const { ada, app, channel } = yield* callOf(1)
        const { url: databaseUrl } = yield* TestDatabase
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql`
        select id from environments where name = 'development' and project_id = ${app.project}`
        const id = String(row?.["id"])
        const act = (word: string, environment = id) =>
          operate(databaseUrl, "voice", word, environment)
        assert.include(yield* act("suspend"), "is suspended")
        assert.deepInclude(yield* ada.socket.next("voice_closed"), { channel, reason: "suspended" })
        assert.strictEqual(yield* refusal(ada, { t: "voiceJoin", channel }), "voice_suspended")
        assert.include(yield* act("resume"), "is resumed")
        yield* app.eventually(
          Effect.map(ada.socket.request({ t: "voiceJoin", channel }), ({ ok }) => ok === true),
          "voice is back"
        )
        assert.match(yield* act("suspend", "env_nobody"), /^failed: .*no environment/s)
        const entries = yield* sql`
        select action, actor_kind, actor_id, target_id from audit
        where action like 'voice.%' order by id`
        assert.deepStrictEqual(
          entries.map((entry) => [entry["action"], entry["actorId"], entry["targetId"]]),
          [
            ["voice.suspend", "operator", id],
            ["voice.resume", "operator", id]
          ]
        )
      }),
    { tags: "long" }
  )

  it.effect("refuses anonymous listeners", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* enableVoice(app)
      const channel = yield* voiceChannel(app, { voice: true, maxMembers: 8, open: true })
      const listener = yield* connectAnonymously(app)
      yield* listener.request({ t: "channelJoin", channel })
      const reply = yield* listener.request({ t: "voiceJoin", channel })
      assert.strictEqual(errorCode(reply), "player_required")
    })
  )
})

layer(AppLive, live)("a deployment without relays", (it) => {
  it.effect("refuses relayed calls, and holds those without relays", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* enableVoice(app)
      const channel = yield* voiceChannel(app, { voice: true, maxMembers: 8 })
      const ada = yield* newMember(app, channel)
      assert.strictEqual(yield* refusal(ada, { t: "voiceJoin", channel }), "voice_unavailable")
      const direct = { mode: "p2p", relayOnly: false }
      yield* manage(app, "PUT", channel, { voice: direct })
      const joined = yield* joinCall(ada, channel)
      assert.deepInclude(joined, { relayOnly: false, iceServers: [], iceTransportPolicy: "all" })
      const outsider = yield* newPlayer(app)
      assert.strictEqual(yield* refusal(outsider, { t: "voiceJoin", channel }), "not_in_channel")
    })
  )
})
