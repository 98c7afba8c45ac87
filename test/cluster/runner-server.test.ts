/** Wires over real sockets: they share the runner's port, and whoever misbehaves on one loses it. */
import { connect, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Queue, type Scope } from "effect"
import { RunnerAddress } from "effect/cluster"
import { SocketServer } from "effect/socket"
import { rooms } from "#rpc/limits"
import { runnerServerLayer } from "#server/cluster/runner-server"
import {
  type RunnerConnection,
  type RunnerConnectionEvents,
  RunnerTransport
} from "#server/cluster/runner-transport"
import { freePort } from "#testing/runners"

const preamble = "runner-line-1\n"

/** What happens at an end, and the end. */
class Watched implements RunnerConnectionEvents {
  readonly frames = Effect.runSync(Queue.unbounded<string>())
  readonly over = Deferred.makeUnsafe<string>()
  wire: RunnerConnection | undefined
  readonly received = (frame: string): void => void Queue.offerUnsafe(this.frames, frame)
  readonly ended = (why: string): void => void Deferred.doneUnsafe(this.over, Effect.succeed(why))
  readonly send = (frame: string): void => this.wire?.send(frame)
  readonly next = Queue.take(this.frames)
  readonly end = Deferred.await(this.over)
}

/** A runner's port, and the wires that others open to it. */
const startPort = Effect.gen(function* () {
  const port = yield* freePort
  const context = yield* Layer.build(runnerServerLayer("127.0.0.1", port))
  const accepted = yield* Queue.unbounded<Watched>()
  const { wires, server } = yield* Effect.provideContext(
    Effect.gen(function* () {
      return { wires: yield* RunnerTransport, server: yield* SocketServer.SocketServer }
    }),
    context
  )
  wires.accept((wire) => {
    const watched = new Watched()
    watched.wire = wire
    Queue.offerUnsafe(accepted, watched)
    return watched
  })
  /** What the cluster's own calls would read. */
  const calls = yield* Queue.unbounded<string>()
  yield* Effect.forkScoped(
    server.run((socket) =>
      Effect.scoped(
        Effect.flatMap(socket.reader, ({ pull }) =>
          Effect.forever(
            Effect.flatMap(pull, (chunks) =>
              Queue.offer(calls, chunks.map((chunk) => Buffer.from(chunk).toString()).join(""))
            )
          )
        )
      )
    )
  )
  const open = (to = port): Watched => {
    const watched = new Watched()
    watched.wire = wires.open(RunnerAddress.make("127.0.0.1", to), watched)
    return watched
  }
  return { port, open, accepted: Queue.take(accepted), calls: Queue.take(calls) }
})

/** A peer that is no runner; it goes with the test. */
const stranger = (port: number): Effect.Effect<Socket, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => connect({ host: "127.0.0.1", port }).on("error", () => undefined)),
    (socket) => Effect.sync(() => void socket.destroy())
  )

describe("the runner's port", () => {
  it.live("carries frames both ways, in order and whole", () =>
    Effect.gen(function* () {
      const { accepted, open } = yield* startPort
      const near = open()
      const frames = ["first", "", "größer ".repeat(200_000), "last"]
      for (const frame of frames) near.send(frame)
      const far = yield* accepted
      for (const frame of frames) assert.strictEqual(yield* far.next, frame)
      far.send("back")
      assert.strictEqual(yield* near.next, "back")
    }).pipe(Effect.scoped)
  )

  it.live("tells both ends of the end, after what was sent", () =>
    Effect.gen(function* () {
      const { accepted, open } = yield* startPort
      const near = open()
      near.send("farewell")
      near.wire?.close("enough")
      const far = yield* accepted
      assert.strictEqual(yield* far.next, "farewell")
      assert.strictEqual(yield* near.end, "enough")
      assert.strictEqual(yield* far.end, "the other end closed it")
    }).pipe(Effect.scoped)
  )

  it.live("hands every other connection to the cluster's calls, with all that it says", () =>
    Effect.gen(function* () {
      const { calls, port } = yield* startPort
      const first = yield* stranger(port)
      first.write("runner calls")
      assert.strictEqual(yield* calls, "runner calls")
      const second = yield* stranger(port)
      second.write("r")
      second.write("unknown")
      let heard = ""
      while (heard !== "runknown") heard += yield* calls
    }).pipe(Effect.scoped)
  )

  it.live("takes a preamble in pieces", () =>
    Effect.gen(function* () {
      const { accepted, port } = yield* startPort
      const peer = yield* stranger(port)
      peer.setNoDelay(true)
      peer.write(preamble.slice(0, 5))
      peer.write(`${preamble.slice(5)}\0\0`)
      peer.write("\0\u0002hi")
      const far = yield* accepted
      assert.strictEqual(yield* far.next, "hi")
    }).pipe(Effect.scoped)
  )

  it.live("ends a wire that carries garbage, and says so", () =>
    Effect.gen(function* () {
      const { accepted, port } = yield* startPort
      const peer = yield* stranger(port)
      peer.write(`${preamble}GET / HTTP/1.1\r\n\r\n`, "latin1")
      const far = yield* accepted
      assert.match(yield* far.end, /a frame of \d+ bytes, at most \d+ are allowed/)
    }).pipe(Effect.scoped)
  )

  it.live(
    "ends a wire whose other end does not read, before it holds much more than the bound",
    () =>
      Effect.gen(function* () {
        const { accepted, port } = yield* startPort
        const peer = yield* stranger(port)
        peer.pause()
        peer.write(preamble)
        const far = yield* accepted
        const frame = "x".repeat(8 * 1024 * 1024)
        const enough = rooms.linkBufferMaxBytes / frame.length + 4
        for (let i = 0; i < enough; i++) far.send(frame)
        assert.strictEqual(yield* far.end, "the other end does not take what is sent")
      }).pipe(Effect.scoped)
  )

  it.live("says why a wire cannot be opened", () =>
    Effect.gen(function* () {
      const { open } = yield* startPort
      const nobody = open(yield* freePort)
      nobody.send("anyone?")
      assert.match(yield* nobody.end, /ECONNREFUSED/)
    }).pipe(Effect.scoped)
  )
})
