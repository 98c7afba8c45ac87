/** Runner connections over real sockets: one port for two protocols, and misbehaving peers. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Queue } from "effect"
import { RunnerAddress } from "effect/cluster"
import { SocketServer } from "effect/socket"
import { rooms, runnerPort } from "#rpc/limits"
import { RunnerServerLive } from "#server/cluster/runner-server"
import {
  type RunnerConnection,
  type RunnerConnectionEvents,
  RunnerTransport
} from "#server/cluster/runner-transport"
import { makePorts } from "../support/runner-ports.ts"
import { freePort } from "#testing/runners"

const preamble = "runner-line-1\n"

/** Records the frames of one end, and why it closed. */
class RecordedEnd implements RunnerConnectionEvents {
  readonly frames = Effect.runSync(Queue.unbounded<string>())
  readonly closed = Deferred.makeUnsafe<string>()
  connection: RunnerConnection | undefined
  readonly received = (frame: string): void => void Queue.offerUnsafe(this.frames, frame)
  readonly ended = (why: string): void => void Deferred.doneUnsafe(this.closed, Effect.succeed(why))
  readonly send = (frame: string): void => this.connection?.send(frame)
  readonly next = Queue.take(this.frames)
  readonly end = Deferred.await(this.closed)
}

/** A runner server, and connections that others open to it. */
const startServer = Effect.gen(function* () {
  const { register, start } = yield* makePorts
  const { address, context: ports, dial, port } = yield* start({ isRunning: false })
  const context = yield* Effect.provideContext(Layer.build(RunnerServerLive), ports)
  const accepted = yield* Queue.unbounded<RecordedEnd>()
  const { transport, server } = yield* Effect.provideContext(
    Effect.gen(function* () {
      return { transport: yield* RunnerTransport, server: yield* SocketServer.SocketServer }
    }),
    context
  )
  transport.accept((connection) => {
    const recorded = new RecordedEnd()
    recorded.connection = connection
    Queue.offerUnsafe(accepted, recorded)
    return recorded
  })
  /** Bytes that reach the cluster's own RPC. */
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
  const open = (to = port): RecordedEnd => {
    const recorded = new RecordedEnd()
    recorded.connection = transport.open(RunnerAddress.make("127.0.0.1", to), recorded)
    return recorded
  }
  /** An authenticated connection of a misbehaving runner. */
  const peer = dial(address)
  return { open, peer, register, accepted: Queue.take(accepted), calls: Queue.take(calls) }
})

describe("the runner server", () => {
  it.live("carries frames both ways, in order and whole", () =>
    Effect.gen(function* () {
      const { accepted, open } = yield* startServer
      const near = open()
      const frames = ["first", "", "größer ".repeat(200_000), "last"]
      for (const frame of frames) near.send(frame)
      const far = yield* accepted
      for (const frame of frames) assert.strictEqual(yield* far.next, frame)
      far.send("back")
      assert.strictEqual(yield* near.next, "back")
    }).pipe(Effect.scoped)
  )

  it.live("reports the close to both ends, after the frames sent before", () =>
    Effect.gen(function* () {
      const { accepted, open } = yield* startServer
      const near = open()
      near.send("farewell")
      near.connection?.close("enough")
      const far = yield* accepted
      assert.strictEqual(yield* far.next, "farewell")
      assert.strictEqual(yield* near.end, "enough")
      assert.strictEqual(yield* far.end, "the other end closed it")
    }).pipe(Effect.scoped)
  )

  it.live("hands every other connection to the cluster's RPC, with all of its bytes", () =>
    Effect.gen(function* () {
      const { calls, peer } = yield* startServer
      const first = yield* peer
      first.write("runner calls")
      assert.strictEqual(yield* calls, "runner calls")
      const second = yield* peer
      second.write("r")
      second.write("unknown")
      let received = ""
      while (received !== "runknown") received += yield* calls
    }).pipe(Effect.scoped)
  )

  it.live("accepts a preamble in pieces", () =>
    Effect.gen(function* () {
      const { accepted, peer } = yield* startServer
      const runner = yield* peer
      runner.setNoDelay(true)
      runner.write(preamble.slice(0, 5))
      runner.write(`${preamble.slice(5)}\0\0`)
      runner.write("\0\u0002hi")
      const far = yield* accepted
      assert.strictEqual(yield* far.next, "hi")
    }).pipe(Effect.scoped)
  )

  it.live("closes a connection that carries garbage, with the reason", () =>
    Effect.gen(function* () {
      const { accepted, peer } = yield* startServer
      const runner = yield* peer
      runner.write(`${preamble}GET / HTTP/1.1\r\n\r\n`, "latin1")
      const far = yield* accepted
      assert.match(yield* far.end, /a frame of \d+ bytes, at most \d+ are allowed/)
    }).pipe(Effect.scoped)
  )

  it.live("closes a connection at the head of a frame above 16 MiB", () =>
    Effect.gen(function* () {
      const { accepted, peer } = yield* startServer
      const runner = yield* peer
      runner.write(preamble)
      const far = yield* accepted
      const head = Buffer.alloc(4)
      head.writeUInt32BE(runnerPort.frameMaxBytes + 1)
      runner.write(head)
      assert.match(yield* far.end, /a frame of 16777217 bytes, at most 16777216 are allowed/)
    }).pipe(Effect.scoped)
  )

  it.live("reports why a link was refused", () =>
    Effect.gen(function* () {
      const { open } = yield* startServer
      assert.match(yield* open(yield* freePort).end, /not in the runner list/)
    }).pipe(Effect.scoped)
  )

  it.live("closes a connection whose peer does not read, before the buffer exceeds its bound", () =>
    Effect.gen(function* () {
      const { accepted, peer } = yield* startServer
      const runner = yield* peer
      runner.pause()
      runner.write(preamble)
      const far = yield* accepted
      const frame = "x".repeat(8 * 1024 * 1024)
      const enough = rooms.linkBufferMaxBytes / frame.length + 4
      for (let i = 0; i < enough; i++) far.send(frame)
      assert.strictEqual(yield* far.end, "the other end does not take what is sent")
    }).pipe(Effect.scoped)
  )

  it.live("reports why a connection cannot be opened", () =>
    Effect.gen(function* () {
      const { open, register } = yield* startServer
      const port = yield* freePort
      yield* register(port)
      const nobody = open(port)
      nobody.send("anyone?")
      assert.match(yield* nobody.end, /ECONNREFUSED/)
    }).pipe(Effect.scoped)
  )
})
