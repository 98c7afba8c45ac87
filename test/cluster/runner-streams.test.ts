/** Connections between runners that carry requests for functions. */
import type { Socket } from "node:net"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Option, Queue } from "effect"
import { SecureRandom } from "effect/crypto"
import { startHandshake } from "#server/cluster/authenticate"
import { RunnerStreams } from "#server/cluster/runner-port"
import { host, identityAt, listen, makePorts, openPeer } from "../support/runner-ports.ts"

const random = Effect.provide(SecureRandom.layerWebCrypto)

/** The next bytes that a socket receives. */
const next = (socket: Socket) =>
  Effect.callback<string>((resume) => {
    socket.once("data", (chunk: Buffer) => resume(Effect.succeed(chunk.toString())))
  })

it.live("connections for functions reach their handler, and not the cluster's RPC", () =>
  Effect.gen(function* () {
    const { start } = yield* makePorts
    const [first, second] = [yield* start(), yield* start()]
    const streams = Context.get(first.context, RunnerStreams)
    const others = Context.get(second.context, RunnerStreams)
    if (streams === undefined || others === undefined) return assert.fail("no streams")
    const served = yield* Queue.unbounded<Socket>()
    others.serve((socket) => void Queue.offerUnsafe(served, socket))
    const socket = yield* streams.dial(others.self)
    const peer = yield* Queue.take(served)
    socket.write("a request")
    assert.strictEqual(yield* next(peer), "a request")
    assert.isTrue(Option.isNone(yield* Queue.poll(second.accepted)))
    peer.destroy()
    socket.destroy()
  }).pipe(Effect.scoped)
)

it.live("a runner of an older release gets no request for functions, and the error names it", () =>
  Effect.gen(function* () {
    const [self] = [yield* identityAt(1)]
    const reply = (port: number) =>
      Buffer.from(
        JSON.stringify({
          protocol: 1,
          release: "0.0.9",
          nonce: "nonce",
          address: `${host}:${port}`,
          key: self.keys[0]?.id
        })
      )
    const ports: Array<number> = []
    const port = yield* listen((socket) => {
      socket.once("data", () => {
        const message = reply(ports[0] ?? 0)
        socket.write(Buffer.concat([Buffer.from([message.length >> 8, message.length]), message]))
      })
    })
    ports.push(port)
    const { socket } = yield* openPeer(port)
    socket.removeAllListeners("data").pause()
    const error = yield* Effect.flip(
      random(startHandshake(socket, self, `${host}:${port}`, "functions 2"))
    )
    assert.strictEqual(error.reason, "version")
    assert.match(error.message, /Release 0\.0\.9 passes on no requests for functions/)
  }).pipe(Effect.scoped)
)
