/** A thousand joins of the media server, with a forced garbage collection before each answer. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import { dataChannelDriver } from "#server/features/voice/datachannel-driver"
import type { MediaReport } from "#server/features/voice/media-messages"
import { MediaRooms } from "#server/features/voice/media-rooms"
import { monotonicMillis } from "#entities/monotonic"
import { freeUdpPort } from "../../../support/udp-port.ts"
import { eventually, VoicePeer } from "../../../support/voice-peer.ts"

const joins = 1000
const atOnce = 10
const tickMillis = 100

/** Lets the time of the calls pass, as the media process does. */
const tickOften = (rooms: MediaRooms) =>
  Effect.acquireRelease(
    Effect.sync(() => setInterval(() => rooms.tick(), tickMillis)),
    (timer) => Effect.sync(() => clearInterval(timer))
  )

/** Collects garbage now: a peer or track that nothing holds is lost. */
const collect = Effect.sync((): (() => void) => {
  setFlagsFromString("--expose-gc")
  return Schema.decodeUnknownSync(
    Schema.declare((gc): gc is () => void => typeof gc === "function")
  )(runInNewContext("gc"))
})

it.live(
  "a thousand members connect and hear a speaker, whatever the garbage collector does",
  () =>
    Effect.gen(function* () {
      const gc = yield* collect
      const now = monotonicMillis(yield* Clock.Clock)
      const peers = new Map<string, VoicePeer>()
      const failures: Array<string> = []
      const sessions = new Map<number, string>()
      let answers = 0
      const answered = (
        peer: VoicePeer,
        { candidates }: Extract<MediaReport, { t: "answered" }>
      ) => {
        for (const { candidate, sdpMid } of candidates) {
          peer.connection.addRemoteCandidate(candidate, sdpMid)
        }
      }
      const report = (message: MediaReport): void => {
        if (message.t === "failed") failures.push(message.session)
        if (message.t === "refused") failures.push(message.message)
        if (message.t === "answered") {
          const peer = peers.get(sessions.get(message.id) ?? "")
          if (peer !== undefined) answered(peer, message)
        }
        if (message.t !== "offered") return
        const { gen, publishMid, sdp, session } = message
        const peer = peers.get(session)
        void peer?.answer(sdp, publishMid).then((answer) => {
          gc()
          answers += 1
          sessions.set(answers, session)
          rooms.handle({ t: "answer", id: answers, call: 1, session, gen, sdp: answer })
        })
      }
      const port = yield* freeUdpPort
      const driver = dataChannelDriver({ port, publicIp: "127.0.0.1", onLog: () => undefined })
      const rooms = new MediaRooms(driver, report, now)
      yield* tickOften(rooms)
      const connect = (session: string) => {
        const peer = new VoicePeer(session)
        peers.set(session, peer)
        rooms.handle({ t: "open", call: 1, environmentId: "env_a", session })
        return peer
      }
      const speaker = connect("speaker")
      yield* eventually(() => speaker.connection.state() === "connected", "the speaker connects")
      rooms.handle({ t: "microphone", call: 1, session: "speaker", open: true })
      speaker.speak()
      for (let done = 0; done < joins; done += atOnce) {
        const names = Array.from({ length: atOnce }, (_, i) => `member-${done + i}`)
        const members = names.map(connect)
        yield* eventually(
          () => members.every((peer) => peer.connection.state() === "connected"),
          `${names[0]} and the next ones connect`
        )
        yield* eventually(
          () => members.every((peer) => peer.total() > 0),
          `${names[0]} and the next ones hear the speaker`
        )
        for (const session of names) {
          rooms.handle({ t: "close", call: 1, session })
          peers.get(session)?.close()
          peers.delete(session)
        }
      }
      speaker.close()
      rooms.handle({ t: "end", call: 1 })
      assert.deepStrictEqual(failures, [])
    }),
  600_000
)
