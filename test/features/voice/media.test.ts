/** Calls through the media server, with WebRTC clients against the real service. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { sdpMaxCharacters } from "#rpc/voice"
import { voiceCalls } from "#entities/voice-session/model"
import { mediaLimits } from "#server/features/voice/media-limits"
import { TestApp } from "#testing/app"
import { at, type OnlinePlayer } from "#testing/players"
import { errorCode, moderate } from "../../support/channel-calls.ts"
import { DatabaseLive } from "../../support/service.ts"
import { enableVoice, joinCall, newMember, voiceChannel } from "../../support/voice-calls.ts"
import {
  connectVoice,
  eventually,
  mediaProcesses,
  tonePacket,
  type VoicePeer
} from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const withVoice = (settings: Readonly<Record<string, string>>) =>
  TestApp.layerWith(settings).pipe(Layer.provide(DatabaseLive))

const publish = Effect.fnUntraced(function* (
  { socket }: OnlinePlayer,
  channel: string,
  session: string
) {
  const reply = yield* socket.request({ t: "voicePublish", channel, session, on: true })
  assert.strictEqual(reply["ok"], true, JSON.stringify(reply))
  return reply["data"]
})

/** A call with these many connected members, each with an open microphone. */
const callOf = Effect.fnUntraced(function* (size: number) {
  const app = yield* TestApp
  yield* enableVoice(app)
  const channel = yield* voiceChannel(app, { voice: { mode: "sfu" } })
  const members = yield* Effect.forEach(
    Array.from({ length: size }),
    Effect.fnUntraced(function* () {
      const player = yield* newMember(app, channel)
      const connected = yield* connectVoice(player, channel)
      yield* publish(player, channel, connected.session)
      return { ...connected, player }
    })
  )
  const [ada = yield* Effect.die("nobody"), bob = ada, cat = bob] = members
  return { app, channel, ada, bob, cat }
})

/** What a receiver reports (RTCP) on the first slot, without naming a sender that the server knows. */
const receiverReport = (): Buffer => {
  const report = Buffer.alloc(32)
  report.writeUInt16BE(0x81_c9, 0)
  report.writeUInt16BE(7, 2)
  report.writeUInt32BE(99, 4)
  report.writeUInt32BE(0x53_56_43_01, 8)
  return report
}

/** Packets on the first slot while the speaker on the second one is heard for a second. */
const heardMeanwhile = Effect.fnUntraced(function* (peer: VoicePeer) {
  const [before, paced] = [peer.total("s0"), peer.total("s1")]
  yield* eventually(() => peer.total("s1") > paced + 50, "the second slot is heard")
  return peer.total("s0") - before
})

layer(withVoice({ SVC_VOICE_UDP_PORTS: "0" }), live)("the media server", (it) => {
  it.effect("forwards a speaker to all others, and names the speaker of each slot", () =>
    Effect.gen(function* () {
      const { ada, app, bob, cat, channel } = yield* callOf(3)
      ada.peer.speak()
      yield* eventually(() => bob.peer.total() > 20 && cat.peer.total() > 20, "two hear ada")
      assert.strictEqual(ada.peer.total(), 0)
      const speaking = yield* bob.player.socket.next("voice_speaking")
      assert.deepStrictEqual(speaking["slots"], { s0: ada.player.id })
      const late = yield* newMember(app, channel)
      yield* joinCall(late, channel)
      const present = yield* late.socket.next("voice_speaking")
      assert.deepStrictEqual(present["slots"], { s0: ada.player.id })
      bob.peer.speak(30)
      yield* eventually(() => cat.peer.total("s1") > 20, "cat hears bob, too")
      ada.peer.silence()
      yield* cat.player.socket.next("voice_speaking", (frame) => at(frame, "slots", "s0") === null)
    })
  )

  it.effect(
    "lets nobody hear a muted or banned player, or a closed microphone",
    () =>
      Effect.gen(function* () {
        const { ada, app, bob, cat, channel } = yield* callOf(3)
        const { id: playerId, socket } = ada.player
        ada.peer.speak()
        yield* eventually(() => bob.peer.total("s0") > 10, "bob hears ada")
        cat.peer.speak()
        yield* eventually(() => bob.peer.total("s1") > 10, "bob hears cat")
        yield* moderate(app, channel, { op: "mute", playerId, seconds: 600 })
        yield* socket.next("channel_self")
        assert.isBelow(yield* heardMeanwhile(bob.peer), 5)
        const data = yield* publish(ada.player, channel, ada.session)
        assert.deepStrictEqual(data, { on: true, canSpeak: false })
        assert.isBelow(yield* heardMeanwhile(bob.peer), 1)
        yield* moderate(app, channel, { op: "unmute", playerId })
        const before = bob.peer.total("s0")
        yield* eventually(() => bob.peer.total("s0") > before + 10, "bob hears ada again")
        const { session } = ada
        yield* socket.request({ t: "voicePublish", channel, session, on: false })
        assert.isBelow(yield* heardMeanwhile(bob.peer), 5)
        yield* publish(ada.player, channel, session)
        yield* moderate(app, channel, { op: "ban", playerId })
        yield* socket.next("channel_closed")
        assert.isBelow(yield* heardMeanwhile(bob.peer), 5)
      }),
    { tags: "long" }
  )

  for (const [what, packet] of [
    ["sound", (sequence: number) => tonePacket({ ssrc: 77, sequence, level: 20 })],
    ["reports on a slot", receiverReport]
  ] as const) {
    it.effect(
      `cuts off a member that floods it with ${what}, and nobody else`,
      () =>
        Effect.gen(function* () {
          const { ada, bob, cat } = yield* callOf(3)
          const { received } = ada.player.socket
          let sent = 0
          yield* eventually(() => {
            for (let i = 0; i < 2 * mediaLimits.packetsPerTick; i++) ada.peer.raw(packet(++sent))
            return received.some(({ t }) => t === "voice_closed")
          }, "ada is cut off")
          bob.peer.speak()
          yield* eventually(() => cat.peer.total() > 20, "cat hears bob")
          assert.isEmpty(bob.player.socket.received.filter(({ t }) => t === "voice_closed"))
        }),
      { tags: "long" }
    )
  }

  it.effect("refuses answers that it cannot use, and offers again a few times", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* enableVoice(app)
      const channel = yield* voiceChannel(app, { voice: { mode: "sfu" } })
      const { socket } = yield* newMember(app, channel)
      const joined = yield* socket.request({ t: "voiceJoin", channel })
      assert.deepInclude(joined["data"], { mode: "sfu", iceTransportPolicy: "all" })
      const session = at(joined, "data", "session")
      const answer = (gen: number, sdp: string) =>
        socket.request({ t: "voiceAnswer", channel, session, gen, sdp })
      const video = `v=0\r\n${"m=video 9 UDP/TLS/RTP/SAVPF 96\r\n".repeat(9)}`
      const audio = `v=0\r\n${"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n".repeat(9)}`
      const bad = ["", video, audio].slice(0, mediaLimits.offersMax)
      for (const [i, sdp] of bad.entries()) {
        const offer = yield* socket.next("voice_sfu_offer")
        assert.strictEqual(offer["gen"], i + 1)
        assert.notInclude(String(offer["sdp"]), "candidate")
        const stale = yield* answer(i, sdp)
        assert.deepStrictEqual(stale["data"], { candidates: [] })
        assert.strictEqual(errorCode(yield* answer(i + 1, sdp)), "invalid_frame")
      }
      const closed = yield* socket.next("voice_closed")
      assert.deepInclude(closed, { channel, reason: "unavailable" })
      const large = yield* answer(1, "x".repeat(sdpMaxCharacters + 1))
      assert.strictEqual(errorCode(large), "invalid_frame")
      const gone = yield* answer(1, "v=0")
      assert.strictEqual(errorCode(gone), "not_in_channel")
    })
  )
})

layer(withVoice({ SVC_VOICE_UDP_PORTS: "0" }), live)("a media process that is killed", (it) => {
  it.effect(
    "ends the calls of a killed media process with unavailable, and serves them again on another",
    () =>
      Effect.gen(function* () {
        const { ada, bob, channel } = yield* callOf(2)
        const [pid = yield* Effect.die("no media process")] = yield* mediaProcesses
        process.kill(pid, "SIGKILL")
        for (const { player } of [ada, bob]) {
          const closed = yield* player.socket.next("voice_closed")
          assert.strictEqual(closed["reason"], "unavailable")
          const { retryMaxMillis, retryMinMillis } = voiceCalls
          assert.isTrue(Number.isInteger(closed["retryAfterMs"]))
          assert.isAtLeast(Number(closed["retryAfterMs"]), retryMinMillis)
          assert.isAtMost(Number(closed["retryAfterMs"]), retryMaxMillis)
        }
        const again = yield* connectVoice(ada.player, channel)
        const other = yield* connectVoice(bob.player, channel)
        yield* publish(ada.player, channel, again.session)
        again.peer.speak()
        yield* eventually(() => other.peer.total() > 0, "bob hears ada again")
      }),
    { tags: "long" }
  )
})

layer(withVoice({ SVC_VOICE_UDP_PORTS: "off" }), live)(
  "a deployment without media server",
  (it) => {
    it.effect("answers voice_unavailable", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* enableVoice(app)
        const channel = yield* voiceChannel(app, { voice: { mode: "sfu" } })
        const { socket } = yield* newMember(app, channel)
        const reply = yield* socket.request({ t: "voiceJoin", channel })
        assert.strictEqual(errorCode(reply), "voice_unavailable")
      })
    )
  }
)
