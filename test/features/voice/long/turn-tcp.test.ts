/** Browser tabs whose network has no UDP, in a call through the media server: over coturn by TCP. */
import { networkInterfaces } from "node:os"
import { assert, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { credentialsFor } from "#server/features/peers/turn-servers"
import { freePort } from "#testing/runners"
import { TestApp } from "#testing/app"
import { Chromium, installed, newVisitor } from "../../../support/client/chromium.ts"
import { DatabaseLive } from "../../../support/service.ts"
import { hasCoturn, shipped, spawnCoturn, turnSecret } from "../../../support/turn-server.ts"

declare global {
  interface Window {
    /** The protocols between the page and the relays that it uses. */
    relayProtocols: () => Promise<ReadonlyArray<string>>
  }
}

const own =
  Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? ""

/** The shipped configuration, without UDP, and with the media server as the only private peer. */
const coturnOptions = [
  "-c",
  shipped,
  `--listening-ip=${own}`,
  `--relay-ip=${own}`,
  `--allowed-peer-ip=${own}`,
  "--no-udp"
]

/** What the test lacks on this machine. */
const lacks = [
  ...(installed ? [] : ["Chromium"]),
  ...(hasCoturn ? [] : ["coturn"]),
  ...(own === "" ? ["an address other than the loopback"] : [])
]
const reason = lacks.length === 0 ? "" : ` (skipped: needs ${lacks.join(", ")})`

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

/** Forces all connections of a page through a relay, as a network without UDP does. */
const relayed = () => {
  const Original = window.RTCPeerConnection
  const peers: Array<RTCPeerConnection> = []
  window.RTCPeerConnection = class extends Original {
    constructor(configuration?: RTCConfiguration) {
      super({ ...configuration, iceTransportPolicy: "relay" })
      peers.push(this)
    }
  }
  window.relayProtocols = async () => {
    const open = peers.filter(({ connectionState }) => connectionState === "connected")
    const reports = await Promise.all(open.map((peer) => peer.getStats()))
    const all = reports.flatMap((report) => Array.from(report.values()))
    return all
      .filter(({ nominated, type }) => type === "candidate-pair" && nominated)
      .map((pair) => all.find(({ id }) => id === pair.localCandidateId)?.relayProtocol)
  }
}

/** What Chromium reports of its connections to a relay. */
const errorsOf = (server: RTCIceServer) =>
  new Promise<ReadonlyArray<string>>((resolve) => {
    const peer = new RTCPeerConnection({ iceServers: [server], iceTransportPolicy: "relay" })
    const errors: Array<string> = []
    peer.onicecandidateerror = ({ errorText }) => void errors.push(errorText)
    peer.onicegatheringstatechange = () => {
      if (peer.iceGatheringState !== "complete") return
      peer.close()
      resolve(errors)
    }
    peer.createDataChannel("probe")
    void peer.setLocalDescription()
  })

/** A TURN server by TCP, with credentials for ten minutes. */
const turnServer = (port: number, now: number): RTCIceServer => ({
  urls: `turn:${own}:${port}?transport=tcp`,
  ...credentialsFor("probe", turnSecret, now + 600_000)
})

it.live.skipIf(lacks.length > 0)(
  `a call through the media server reaches players over a TURN server by TCP${reason}`,
  ({ skip }) =>
    Effect.gen(function* () {
      const port = yield* freePort
      const log = yield* spawnCoturn(port, coturnOptions)
      const app = yield* Layer.build(
        TestApp.layerWith({
          SVC_TURN_URLS: `turn:${own}:${port}?transport=tcp`,
          SVC_TURN_SECRET: turnSecret,
          SVC_VOICE_UDP_PORTS: "0",
          SVC_VOICE_PUBLIC_IP: own
        })
      )
      const { url } = Context.get(app, TestApp)
      const visitor = yield* newVisitor()
      const probe = yield* ask(() => visitor.newPage())
      yield* ask(() => probe.goto(`${url}/dev/voice`))
      // Where a connection to the machine itself has another local address than Chromium expects.
      const server = turnServer(port, yield* Clock.currentTimeMillis)
      const [error] = yield* ask(() => probe.evaluate(errorsOf, server))
      if (error !== undefined) skip(`Chromium reaches no relay on this machine by TCP: ${error}`)
      yield* ask(() => visitor.addInitScript(relayed))
      const open = Effect.gen(function* () {
        const page = yield* ask(() => visitor.newPage())
        yield* ask(() => page.goto(`${url}/dev/voice`))
        yield* ask(() => page.selectOption("[name=mode]", "sfu"))
        yield* ask(() => page.getByRole("button", { name: "Join" }).click())
        return page
      })
      const tabs = [yield* open, yield* open]
      for (const tab of tabs) {
        yield* ask(() => tab.waitForSelector("li.speaking", { timeout: 60_000 }))
        const protocols = yield* ask(() => tab.evaluate(() => window.relayProtocols()))
        assert.deepStrictEqual(protocols, ["tcp"], log())
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(Chromium.layer, DatabaseLive))),
  180_000
)
