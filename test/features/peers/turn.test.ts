/**
 * Two players behind a real TURN server (coturn), set up through a peer-to-peer room as a game does
 * it: credentials from `iceServers`, the set-up by `signal`, and then a message from peer to peer.
 */
import { spawn, spawnSync } from "node:child_process"
import { createSocket } from "node:dgram"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Queue, Schedule } from "effect"
import { type DataChannel, PeerConnection } from "node-datachannel"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer, type OnlinePlayer } from "#testing/players"
import { DatabaseLive } from "../../support/service.ts"

const secret = "shared-with-the-turn-server"
const installed = spawnSync("turnserver", ["--version"]).error === undefined

const freeUdpPort = Effect.callback<number>((resume) => {
  const socket = createSocket("udp4")
  socket.bind(0, "127.0.0.1", () => {
    const { port } = socket.address()
    socket.close(() => resume(Effect.succeed(port)))
  })
})

/** coturn as the README runs it, on this machine alone. */
class Coturn extends Context.Service<
  Coturn,
  { readonly port: number; readonly log: () => string }
>()("test/features/peers/turn.test/Coturn") {
  static readonly layer = Layer.effect(
    Coturn,
    Effect.gen(function* () {
      const port = yield* freeUdpPort
      let log = ""
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          const server = spawn("turnserver", [
            "-n",
            "--listening-ip=127.0.0.1",
            "--relay-ip=127.0.0.1",
            `--listening-port=${port}`,
            "--use-auth-secret",
            `--static-auth-secret=${secret}`,
            "--realm=test",
            "--fingerprint",
            "--no-cli",
            "--no-tls",
            "--no-dtls",
            "--no-tcp-relay",
            "--allow-loopback-peers",
            "--log-file=stdout",
            "--verbose"
          ])
          for (const output of [server.stdout, server.stderr]) {
            output.on("data", (chunk: Buffer) => (log += chunk.toString()))
          }
          return server
        }),
        (server) => Effect.sync(() => server.kill("SIGKILL"))
      )
      return Coturn.of({ port, log: () => log })
    })
  )
}

const AppLive = Layer.unwrap(
  Effect.map(Coturn, ({ port }) =>
    TestApp.layerWith({
      SVC_TURN_URLS: `turn:127.0.0.1:${port}`,
      SVC_TURN_SECRET: secret
    })
  )
).pipe(Layer.provide(DatabaseLive), Layer.provideMerge(Coturn.layer))

/** One end of a WebRTC connection, configured by the service and set up through it. */
const peerOf = Effect.fnUntraced(function* (player: OnlinePlayer, other: OnlinePlayer) {
  const { data } = yield* player.socket.ask({ t: "iceServers" })
  assert.strictEqual(at(data, "iceTransportPolicy"), "relay")
  const server = at(data, "iceServers", 0)
  const [, hostname = "", port] = String(at(server, "urls", 0)).split(":")
  const peer = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new PeerConnection(player.id, {
          iceServers: [
            {
              hostname,
              port: Number(port),
              username: String(at(server, "username")),
              password: String(at(server, "credential")),
              relayType: "TurnUdp"
            }
          ],
          iceTransportPolicy: "relay"
        })
    ),
    (open) => Effect.sync(() => open.close())
  )
  const steps = yield* Queue.unbounded<object>()
  peer.onLocalDescription((sdp, type) => Queue.offerUnsafe(steps, { kind: type, data: { sdp } }))
  peer.onLocalCandidate((candidate, sdpMid) =>
    Queue.offerUnsafe(steps, { kind: "candidate", data: { candidate, sdpMid } })
  )
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.flatMap(Queue.take(steps), (step) =>
        player.socket.ask({ t: "signal", to: other.id, ...step })
      )
    )
  )
  yield* Effect.forkScoped(Effect.forever(Effect.flatMap(player.socket.next("signal"), take(peer))))
  return peer
})

const take = (peer: PeerConnection) => (signal: { readonly [key: string]: unknown }) =>
  Effect.sync(() => {
    const { data, kind } = signal
    if (kind === "offer") peer.setRemoteDescription(String(at(data, "sdp")), "offer")
    if (kind === "answer") peer.setRemoteDescription(String(at(data, "sdp")), "answer")
    if (kind === "candidate") {
      peer.addRemoteCandidate(String(at(data, "candidate")), String(at(data, "sdpMid")))
    }
  })

const message = (channel: DataChannel) =>
  Effect.callback<string>((resume) => {
    channel.onMessage((text) => resume(Effect.succeed(String(text))))
  })

layer(AppLive, { timeout: "60 seconds", excludeTestServices: true })("a TURN server", (it) => {
  it.effect.skipIf(!installed)(
    "relays between two players whom the service gave credentials (needs coturn: apt-get install coturn)",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const coturn = yield* Coturn
        const features = { multiplayer: true }
        const mesh = { key: "mesh", minPlayers: 2, transport: "p2p" }
        yield* configure(app, { features, multiplayer: { modes: [mesh] } })
        const ada = yield* newPlayer(app)
        const bob = yield* newPlayer(app)
        const created = yield* ada.socket.ask({ t: "create", mode: "mesh" })
        yield* bob.socket.ask({ t: "join", roomId: at(created, "data", "roomId") })
        const caller = yield* peerOf(ada, bob)
        const callee = yield* peerOf(bob, ada)
        const incoming = Effect.callback<DataChannel>((resume) =>
          callee.onDataChannel((channel) => resume(Effect.succeed(channel)))
        )
        const channel = caller.createDataChannel("game")
        const far = yield* incoming
        const heard = yield* Effect.forkChild(message(channel), { startImmediately: true })
        yield* Effect.sync(() => far.sendMessage("over the relay")).pipe(
          Effect.repeat({ until: (sent) => sent, schedule: Schedule.spaced("20 millis") })
        )
        assert.strictEqual(yield* Fiber.join(heard), "over the relay")
        for (const peer of [caller, callee]) {
          const pair = peer.getSelectedCandidatePair()
          assert.strictEqual(pair?.local.type, "relay", coturn.log())
          assert.strictEqual(pair?.remote.type, "relay")
        }
        assert.include(coturn.log(), ada.id)
      }),
    30_000
  )
})
