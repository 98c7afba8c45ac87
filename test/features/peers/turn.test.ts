/**
 * Two players behind a TURN server, connected through a peer-to-peer room as a game does it:
 * credentials from `iceServers`, the connection set up by `signal`, then a message from peer to peer.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, Schedule } from "effect"
import { type DataChannel, PeerConnection } from "node-datachannel"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer, type OnlinePlayer } from "#testing/players"
import { DatabaseLive } from "../../support/service.ts"
import { TurnServer, turnSecret } from "../../support/turn-server.ts"
import { openRoom } from "../../support/opened-room.ts"

const AppLive = Layer.unwrap(
  Effect.map(TurnServer, ({ port }) =>
    TestApp.layerWith({
      SVC_TURN_URLS: `turn:127.0.0.1:${port}`,
      SVC_TURN_SECRET: turnSecret
    })
  )
).pipe(Layer.provide(DatabaseLive), Layer.provideMerge(TurnServer.layerLoopback))

/** One end of a WebRTC connection, with ICE servers and signalling from the service. */
const openPeer = Effect.fnUntraced(function* (player: OnlinePlayer, other: OnlinePlayer) {
  const { data } = yield* player.socket.request({ t: "iceServers" })
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
  const signals = yield* Queue.unbounded<object>()
  peer.onLocalDescription((sdp, type) => Queue.offerUnsafe(signals, { kind: type, data: { sdp } }))
  peer.onLocalCandidate((candidate, sdpMid) =>
    Queue.offerUnsafe(signals, { kind: "candidate", data: { candidate, sdpMid } })
  )
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.flatMap(Queue.take(signals), (signal) =>
        player.socket.request({ t: "signal", to: other.id, ...signal })
      )
    )
  )
  yield* Effect.forkScoped(
    Effect.forever(Effect.flatMap(player.socket.next("signal"), apply(peer)))
  )
  return peer
})

const apply = (peer: PeerConnection) => (signal: { readonly [key: string]: unknown }) =>
  Effect.sync(() => {
    const { data, kind } = signal
    if (kind === "offer") peer.setRemoteDescription(String(at(data, "sdp")), "offer")
    if (kind === "answer") peer.setRemoteDescription(String(at(data, "sdp")), "answer")
    if (kind === "candidate") {
      peer.addRemoteCandidate(String(at(data, "candidate")), String(at(data, "sdpMid")))
    }
  })

const nextMessage = (channel: DataChannel) =>
  Effect.callback<string>((resume) => {
    channel.onMessage((text) => resume(Effect.succeed(String(text))))
  })

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("a TURN server", (it) => {
  it.effect(
    "relays between two players with credentials from the service",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const turnServer = yield* TurnServer
        const features = { multiplayer: true }
        const mesh = { key: "mesh", minPlayers: 2, transport: "p2p" }
        yield* configure(app, { features, multiplayer: { modes: [mesh] } })
        const ada = yield* newPlayer(app)
        const bob = yield* newPlayer(app)
        yield* openRoom([ada, bob], { mode: "mesh" })
        const caller = yield* openPeer(ada, bob)
        const callee = yield* openPeer(bob, ada)
        const incoming = Effect.callback<DataChannel>((resume) =>
          callee.onDataChannel((channel) => resume(Effect.succeed(channel)))
        )
        const channel = caller.createDataChannel("game")
        const far = yield* incoming
        const received = yield* Effect.forkChild(nextMessage(channel), { startImmediately: true })
        yield* Effect.sync(() => far.sendMessage("over the relay")).pipe(
          Effect.repeat({ until: (sent) => sent, schedule: Schedule.spaced("20 millis") })
        )
        assert.strictEqual(yield* Fiber.join(received), "over the relay")
        for (const peer of [caller, callee]) {
          const pair = peer.getSelectedCandidatePair()
          assert.strictEqual(pair?.local.type, "relay", turnServer.log())
          assert.strictEqual(pair?.remote.type, "relay")
        }
        assert.include(turnServer.log(), ada.id)
      }),
    30_000
  )
})
