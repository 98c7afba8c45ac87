/**
 * Voice calls of the client between real browser pages, in both modes.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "playwright-core"
import type { Client, VoiceCall } from "#client/client"
import { TestApp } from "#testing/app"
import { Chromium, installed, needsChromium, newVisitor } from "../support/client/chromium.ts"
import { GamePages } from "../support/client/game-pages.ts"
import { DatabaseLive } from "../support/service.ts"
import { enableVoice, voiceChannel } from "../support/voice-calls.ts"
import { mediaProcesses } from "../support/voice-peer.ts"
import { freeUdpPort } from "../support/udp-port.ts"

declare global {
  interface Window {
    readonly client: Client
    /** The call of the page, and the connections that it has made. */
    call: VoiceCall
    peers: Array<RTCPeerConnection>
    /** The audio elements that the page has made. */
    sounds: Array<HTMLAudioElement>
    /** Counts the streams that carry sound; the kinds of the candidates that carry them. */
    heard: () => Promise<{ readonly streams: number; readonly kinds: ReadonlyArray<string> }>
  }
}

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

/** Notes the connections and sounds of a page, and measures them. */
const watch = (isRelayed: boolean) => {
  const sounds: Array<HTMLAudioElement> = []
  window.sounds = sounds
  window.Audio = class extends Audio {
    constructor(source?: string) {
      super(source)
      sounds.push(this)
    }
  }
  const peers: Array<RTCPeerConnection> = []
  const Original = window.RTCPeerConnection
  window.peers = peers
  window.RTCPeerConnection = class extends Original {
    constructor(configuration?: RTCConfiguration) {
      super(isRelayed ? { ...configuration, iceTransportPolicy: "relay" } : configuration)
      peers.push(this)
    }
  }
  window.heard = async () => {
    const open = peers.filter(({ connectionState }) => connectionState === "connected")
    const reports = await Promise.all(open.map((peer) => peer.getStats()))
    const all = reports.flatMap((report) => Array.from(report.values()))
    const sounds = all.filter(
      ({ totalAudioEnergy, type }) => type === "inbound-rtp" && totalAudioEnergy > 0
    )
    const pairs = all.filter(({ nominated, type }) => type === "candidate-pair" && nominated)
    const own = pairs.map((pair) => all.find(({ id }) => id === pair.localCandidateId))
    return { streams: sounds.length, kinds: own.map((candidate) => candidate?.candidateType) }
  }
}

const inCall = Effect.fnUntraced(function* (
  channel: string,
  microphone: boolean,
  isRelayed = false
) {
  const visitor = yield* newVisitor()
  yield* ask(() => visitor.addInitScript(watch, isRelayed))
  const page = yield* ask(() => visitor.newPage())
  const frames: Array<string> = []
  page.on("websocket", (socket) => {
    const see = ({ payload }: { readonly payload: string | Buffer }) => frames.push(String(payload))
    socket.on("framesent", see)
    socket.on("framereceived", see)
  })
  const { url } = yield* GamePages
  yield* ask(() => page.goto(url))
  yield* ask(() => page.waitForFunction(() => document.title === "Ready"))
  const id = yield* ask(() =>
    page.evaluate(
      async ({ channel, microphone }) => {
        const player = await window.client.sessions.guest()
        const joined = await window.client.channels.join(channel)
        const plain = { echoCancellation: false, noiseSuppression: false, autoGainControl: false }
        // On a busy machine a media process takes long to start.
        for (let tries = 1; ; tries++) {
          try {
            window.call = await joined.voice.join({ microphone: microphone && plain })
            return player.id
          } catch (error) {
            const isStarting = error instanceof Error && error.message.includes("is starting")
            if (!isStarting || tries === 10) throw error
          }
        }
      },
      { channel, microphone }
    )
  )
  return { page, id, frames }
})

/** The names of the frames of calls, from the end of the call on. */
const framesOfReturn = (frames: ReadonlyArray<string>): ReadonlyArray<string> => {
  const names = frames.flatMap((frame) => /"t":"(voice\w+)"/.exec(frame)?.[1] ?? [])
  return names.slice(names.indexOf("voice_closed"))
}

/** Waits until a page hears this many others, and its sound travels so; the first way may be replaced. */
const hears = (page: Page, streams: number, kinds?: ReadonlyArray<string>) =>
  ask(() =>
    page.evaluate(
      async ({ kinds, streams }) => {
        for (;;) {
          const heard = await window.heard()
          const isAsExpected = kinds === undefined || String(kinds) === String(heard.kinds)
          if (heard.streams >= streams && isAsExpected) return
          await new Promise(requestAnimationFrame)
        }
      },
      { kinds, streams }
    )
  ).pipe(Effect.timeout("60 seconds"), Effect.orDie)

const speaks = (page: Page, id: string) =>
  ask(() => page.waitForFunction((id) => window.call.speaking.includes(id), id))

const silent = (page: Page, id: string) =>
  ask(() => page.waitForFunction((id) => !window.call.speaking.includes(id), id))

/** Waits until this many sounds of a page have the volume. */
const sounding = (page: Page, volume: number, count: number) =>
  ask(() =>
    page.waitForFunction(
      ({ count, volume }) =>
        window.sounds.filter((sound) => sound.srcObject !== null && sound.volume === volume)
          .length === count,
      { count, volume }
    )
  )

const members = (page: Page, count: number) =>
  ask(() => page.waitForFunction((count) => window.call.members.length === count, count))

const VoiceLive = Layer.mergeAll(Chromium.layer, GamePages.layer).pipe(
  Layer.provideMerge(
    Layer.unwrap(
      Effect.map(freeUdpPort, (port) =>
        TestApp.layerWith({ SVC_TURN_PORT: String(port), SVC_VOICE_UDP_PORTS: "0" })
      )
    ).pipe(Layer.provide(DatabaseLive))
  )
)

const live = { timeout: "120 seconds", excludeTestServices: true } as const

layer(VoiceLive, live)(`voice calls between pages in Chromium${needsChromium}`, (it) => {
  for (const mode of ["p2p", "sfu"] as const) {
    it.effect.skipIf(!installed)(
      `three pages hear each other by ${mode}, and one that mutes and leaves is silent`,
      () =>
        Effect.gen(function* () {
          const app = yield* TestApp
          yield* enableVoice(app)
          const channel = yield* voiceChannel(app, { voice: { mode }, maxMembers: 8 })
          const one = yield* inCall(channel, true)
          const two = yield* inCall(channel, true)
          const three = yield* inCall(channel, true, true)
          for (const { page } of [one, two, three]) {
            const byServer = [page === three.page ? "relay" : "host"]
            yield* hears(page, 2, mode === "p2p" ? ["relay", "relay"] : byServer)
          }
          yield* speaks(one.page, two.id)
          yield* speaks(two.page, one.id)
          const { devices, levels } = yield* ask(() =>
            one.page.evaluate(async () => ({
              devices: (await window.call.devices()).length,
              levels: Array.from(window.call.levels.keys())
            }))
          )
          assert.isAbove(devices, 0)
          assert.includeMembers(levels, [one.id, two.id])
          yield* ask(() => one.page.evaluate((id) => window.call.setVolume(id, 0.25), two.id))
          yield* sounding(one.page, 0.25, 1)
          yield* ask(() => one.page.evaluate((id) => window.call.setVolume(id, 2), two.id))
          yield* sounding(one.page, 0.25, 0)
          yield* ask(() => two.page.evaluate(() => window.call.mute()))
          yield* silent(one.page, two.id)
          yield* ask(() => two.page.evaluate(() => window.call.mute(false)))
          yield* speaks(one.page, two.id)
          yield* ask(() => two.page.evaluate(() => window.call.leave()))
          yield* members(one.page, 2)
          yield* silent(one.page, two.id)
          yield* speaks(one.page, three.id)
        }),
      120_000
    )
  }

  it.effect.skipIf(!installed)(
    "a listener hears without a microphone, and again after a lost connection",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* enableVoice(app)
        const channel = yield* voiceChannel(app, { voice: { mode: "sfu" }, maxMembers: 8 })
        const speaker = yield* inCall(channel, true)
        const listener = yield* inCall(channel, false)
        yield* hears(listener.page, 1)
        assert.isTrue(yield* ask(() => listener.page.evaluate(() => window.call.muted)))
        yield* ask(() =>
          listener.page.evaluate(async () => {
            const back = new Promise((resolve) => window.call.on("reconnected", resolve))
            for (const peer of window.peers) {
              peer.close()
              Object.defineProperty(peer, "connectionState", { value: "failed" })
              peer.onconnectionstatechange?.(new Event("connectionstatechange"))
            }
            await back
          })
        )
        yield* hears(listener.page, 1)
        yield* speaks(listener.page, speaker.id)
      }),
    { timeout: 120_000 }
  )

  it.effect.skipIf(!installed)("the client joins again when the media process is killed", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* enableVoice(app)
      const channel = yield* voiceChannel(app, { voice: { mode: "sfu" }, maxMembers: 8 })
      const speaker = yield* inCall(channel, true)
      const listener = yield* inCall(channel, false)
      yield* speaks(listener.page, speaker.id)
      const back = [speaker, listener].map(({ page }) =>
        page.evaluate(() =>
          new Promise((resolve) => window.call.on("reconnected", resolve)).then(() => undefined)
        )
      )
      const [pid = yield* Effect.die("no media process")] = yield* mediaProcesses
      process.kill(pid, "SIGKILL")
      yield* ask(() => Promise.all(back))
      yield* speaks(listener.page, speaker.id)
      yield* hears(listener.page, 1)
      for (const { frames } of [speaker, listener]) {
        const names = framesOfReturn(frames)
        assert.deepStrictEqual(names.slice(0, 2), ["voice_closed", "voiceJoin"], names.join())
        assert.notInclude(names, "voiceLeave", "the client did not wait for its connection to fail")
      }
    })
  )
})
