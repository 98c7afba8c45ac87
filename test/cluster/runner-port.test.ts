/** The runner port under attack: without the key, with recorded or reflected bytes, with floods and garbage. */
import type { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Queue } from "effect"
import { RunnerAddress } from "effect/cluster"
import { SecureRandom } from "effect/crypto"
import { TestClock } from "effect/testing"
import { acceptHandshake, startHandshake } from "#server/cluster/authenticate"
import { runnerPort } from "#server/cluster/runner-port-limits"
import { shouldDrain } from "#server/cluster/runner-versions"
import { certified, foreign } from "../support/certificate.ts"
import {
  host,
  identityAt,
  listen,
  makePorts,
  masterKey,
  openPeer,
  otherMasterKey,
  Peer,
  tlsFiles
} from "../support/runner-ports.ts"

/** Fails when the port has handed a connection to the protocols above it. */
const assertNoneAccepted = (accepted: Queue.Queue<Socket>) =>
  Effect.map(Queue.poll(accepted), (socket) => assert.isTrue(Option.isNone(socket)))

/** Sends from one end, and waits until the other has received it. */
const exchange = (from: Socket, to: Socket) =>
  Effect.callback<string>((resume) => {
    to.once("data", (chunk: Buffer) => resume(Effect.succeed(chunk.toString())))
    from.write("hello")
  })

/** Bytes that a socket sends, in pieces as they were written. */
const recordWrites = (socket: Socket): Array<Buffer> => {
  const written: Array<Buffer> = []
  const write = socket.write.bind(socket)
  socket.write = (chunk: string | Uint8Array) => {
    written.push(Buffer.from(chunk))
    return write(chunk)
  }
  return written
}

const random = Effect.provide(SecureRandom.layerWebCrypto)

/** Moves the clock on until the connection closes. */
const untilClosed = (peer: Peer) =>
  Effect.raceFirst(peer.end, Effect.forever(Effect.andThen(TestClock.adjust(100), Effect.yieldNow)))

const at = (port: number) => RunnerAddress.make(host, port)

describe("two runners", () => {
  it.live("authenticates two runners to each other, and carries bytes both ways", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const [near, far] = [yield* start(), yield* start()]
      const dialed = yield* near.dial(far.address)
      const accepted = yield* Queue.take(far.accepted)
      assert.strictEqual(yield* exchange(dialed, accepted), "hello")
      assert.strictEqual(yield* exchange(accepted, dialed), "hello")
      assert.isEmpty([...near.lines, ...far.lines])
    }).pipe(Effect.scoped)
  )

  it.live("connects two runners while the master key is replaced on one after the other", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const former = yield* start()
      const renewed = yield* start({
        env: { SVC_MASTER_KEY: otherMasterKey, SVC_OLDER_MASTER_KEYS: masterKey }
      })
      yield* former.dial(renewed.address)
      yield* renewed.dial(former.address)
    }).pipe(Effect.scoped)
  )

  it.live("says on both runners which setting differs when their master keys do", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const [near, far] = [
        yield* start(),
        yield* start({ env: { SVC_MASTER_KEY: otherMasterKey } })
      ]
      const error = yield* Effect.flip(near.dial(far.address))
      assert.strictEqual(error.reason, "key")
      assert.match(error.message, /different master keys.*SVC_MASTER_KEY/)
      for (const { lines, logged } of [near, far]) {
        yield* logged(/SVC_MASTER_KEY/)
        assert.lengthOf(lines, 1)
      }
      yield* assertNoneAccepted(far.accepted)
    }).pipe(Effect.scoped)
  )

  it.live("dials no address that is not in the runner list", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const near = yield* start()
      const connections: Array<Socket> = []
      const port = yield* listen((socket) => connections.push(socket))
      const error = yield* Effect.flip(near.dial(at(port)))
      assert.strictEqual(error.reason, "unlisted")
      assert.isEmpty(connections)
    }).pipe(Effect.scoped)
  )
})

describe("a stranger", () => {
  it.live("rejects a stranger with the id of a key that it does not have", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const runner = yield* start()
      const { socket } = yield* openPeer(runner.port)
      const { keys } = yield* identityAt(1)
      const claimed = { ...(yield* identityAt(1, otherMasterKey)) }
      const guessed = keys.map(({ id }) => ({ id, secret: new Uint8Array(32) }))
      const self = { ...claimed, keys: guessed }
      const error = yield* Effect.flip(
        random(startHandshake(socket, self, `${host}:${runner.port}`))
      )
      assert.strictEqual(error.reason, "proof")
      socket.write(Buffer.concat([Buffer.from([0, 32]), Buffer.alloc(32)]))
      yield* Effect.callback<void>((resume) => void socket.once("close", () => resume(Effect.void)))
      yield* assertNoneAccepted(runner.accepted)
      yield* runner.logged(/does not have the key/)
    }).pipe(Effect.scoped)
  )

  it.live("rejects a stranger that dials with the recorded bytes of a runner", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const runner = yield* start()
      const { socket } = yield* openPeer(runner.port)
      const written = recordWrites(socket)
      yield* random(startHandshake(socket, yield* identityAt(1), `${host}:${runner.port}`))
      yield* Queue.take(runner.accepted)
      assert.lengthOf(written, 2)
      const replay = yield* openPeer(runner.port)
      for (const bytes of written) replay.socket.write(bytes)
      yield* replay.end
      yield* assertNoneAccepted(runner.accepted)
    }).pipe(Effect.scoped)
  )

  it.live("rejects a dialed stranger that replays the recorded bytes of a runner", () =>
    Effect.gen(function* () {
      const { register, start } = yield* makePorts
      const runner = yield* start()
      const recorded = yield* Queue.unbounded<ReadonlyArray<Buffer>>()
      let replay: ReadonlyArray<Buffer> = []
      const self = { ...(yield* identityAt(1)) }
      const port: number = yield* listen((socket) => {
        if (replay.length > 0) return void replay.forEach((bytes) => socket.write(bytes))
        const written = recordWrites(socket)
        const identity = { ...self, address: `${host}:${port}` }
        Effect.runFork(
          Effect.andThen(random(acceptHandshake(socket, identity)), Queue.offer(recorded, written))
        )
      })
      yield* register(port)
      yield* runner.dial(at(port))
      replay = yield* Queue.take(recorded)
      assert.lengthOf(replay, 2)
      assert.strictEqual((yield* Effect.flip(runner.dial(at(port)))).reason, "proof")
    }).pipe(Effect.scoped)
  )

  it.live("rejects a dialed stranger that reflects what the runner sends, in either way", () =>
    Effect.gen(function* () {
      const { register, start } = yield* makePorts
      const runner = yield* start()
      const echo = yield* listen((socket) => socket.pipe(socket))
      yield* register(echo)
      assert.strictEqual((yield* Effect.flip(runner.dial(at(echo)))).reason, "invalid")
      const sockets: Array<Socket> = []
      const relay = yield* listen((socket) => {
        sockets.push(socket)
        Effect.runFork(
          Effect.scoped(
            Effect.andThen(openPeer(runner.port), ({ end, socket: own }) => {
              socket.pipe(own)
              own.pipe(socket)
              return end
            })
          )
        )
      })
      yield* register(relay)
      assert.strictEqual((yield* Effect.flip(runner.dial(at(relay)))).reason, "address")
      yield* runner.logged(/dialed the address of another runner/)
      yield* assertNoneAccepted(runner.accepted)
    }).pipe(Effect.scoped)
  )
})

describe("a hostile connection", () => {
  it.live("ends a connection at once at a frame head of 256 MiB, and buffers nothing of it", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const runner = yield* start()
      const peer = yield* openPeer(runner.port)
      const before = process.memoryUsage().arrayBuffers
      peer.socket.write(Buffer.from([0x10, 0, 0, 0]))
      const chunk = Buffer.alloc(1024 * 1024)
      for (let i = 0; i < 256; i++) peer.socket.write(chunk)
      yield* peer.end
      assert.isBelow(process.memoryUsage().arrayBuffers - before, 16 * 1024 * 1024)
      yield* assertNoneAccepted(runner.accepted)
    }).pipe(Effect.scoped)
  )

  it.live("ends connections with garbage at once, and writes one line for many", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const runner = yield* start()
      for (const garbage of ["GET / HTTP/1.1\r\n\r\n", "\0\u0003{}x", "\0\0", "runner-line-1\n"]) {
        const peer = yield* openPeer(runner.port)
        peer.socket.write(garbage)
        yield* peer.end
      }
      yield* runner.logged(/Rejected a connection.*not a runner/)
      assert.lengthOf(runner.lines, 1)
    }).pipe(Effect.scoped)
  )

  it.live.each([false, true])("writes one line for many port scans (with TLS: %s)", (secured) =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const runner = yield* start({ env: secured ? yield* tlsFiles(certified) : {} })
      for (let i = 0; i < 50; i++) {
        const peer = yield* openPeer(runner.port)
        peer.socket.end()
        yield* peer.end
      }
      yield* runner.dial(runner.address)
      yield* runner.logged(/without sending anything/)
      assert.lengthOf(runner.lines, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("ends a connection whose handshake takes longer than three seconds", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const runner = yield* start()
      const peer = yield* openPeer(runner.port)
      peer.socket.write(Buffer.from([0, 200, 0x7b]))
      yield* untilClosed(peer)
      assert.match(runner.lines.join(), /longer than 3 s/)
      yield* assertNoneAccepted(runner.accepted)
    }).pipe(Effect.scoped)
  )

  it.live("frees the place of a connection that closes in the middle of the handshake", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const runner = yield* start()
      for (let i = 0; i < runnerPort.unauthenticatedPerAddressMax + 1; i++) {
        const peer = yield* openPeer(runner.port)
        peer.socket.end(Buffer.from([0, 200, 0x7b]))
        yield* peer.end
      }
      yield* runner.dial(runner.address)
      yield* runner.logged(/closed the connection/)
    }).pipe(Effect.scoped)
  )

  it.effect("limits unauthenticated connections by address and in total, but no runner", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const runner = yield* start()
      const { unauthenticatedMax, unauthenticatedPerAddressMax } = runnerPort
      const openFrom = (address: string) =>
        Effect.all(
          Array.from({ length: unauthenticatedPerAddressMax + 10 }, () =>
            openPeer(runner.port, address)
          )
        )
      const first = yield* openFrom("127.0.0.2")
      yield* Effect.all(first.slice(0, 10).map(({ end }) => end))
      assert.lengthOf(
        first.filter(({ socket }) => !socket.destroyed),
        unauthenticatedPerAddressMax
      )
      yield* runner.dial(runner.address)
      yield* Queue.take(runner.accepted)
      const addresses = unauthenticatedMax / unauthenticatedPerAddressMax
      for (let i = 0; i < addresses; i++) yield* openFrom(`127.0.0.${i + 3}`)
      yield* Effect.all(first.map(({ end }) => end))
      yield* runner.dial(runner.address)
    }).pipe(Effect.scoped)
  )
})

describe("mutual TLS between runners", () => {
  it.live("carries the handshake of two runners and everything after it over mutual TLS", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const env = yield* tlsFiles(certified)
      const [near, far] = [yield* start({ env }), yield* start({ env })]
      const dialed = yield* near.dial(far.address)
      const accepted = yield* Queue.take(far.accepted)
      assert.strictEqual(yield* exchange(dialed, accepted), "hello")
      assert.strictEqual(yield* exchange(accepted, dialed), "hello")
      assert.isTrue("encrypted" in accepted && accepted.encrypted)
    }).pipe(Effect.scoped)
  )

  it.live("refuses a runner without mutual TLS, and names the settings on both runners", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const secured = yield* start({ env: yield* tlsFiles(certified) })
      const plain = yield* start()
      assert.match((yield* Effect.flip(plain.dial(secured.address))).message, /SVC_RUNNER_TLS_/)
      yield* secured.logged(/SVC_RUNNER_TLS_/)
      yield* Effect.flip(secured.dial(plain.address))
      yield* plain.logged(/SVC_RUNNER_TLS_/)
      yield* assertNoneAccepted(secured.accepted)
      yield* assertNoneAccepted(plain.accepted)
    }).pipe(Effect.scoped)
  )

  it.live("refuses a certificate of another authority, also with the right key", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const near = yield* start({ env: yield* tlsFiles(foreign) })
      const far = yield* start({ env: yield* tlsFiles(certified) })
      yield* Effect.flip(near.dial(far.address))
      const trusting = yield* tlsFiles(foreign)
      const { SVC_RUNNER_TLS_CA } = yield* tlsFiles(certified)
      const halfway = yield* start({ env: { ...trusting, SVC_RUNNER_TLS_CA } })
      yield* Effect.flip(halfway.dial(far.address))
      yield* assertNoneAccepted(far.accepted)
      yield* far.logged(/SVC_RUNNER_TLS_/)
    }).pipe(Effect.scoped)
  )

  it.live("limits connections that never begin TLS to the newest, and still takes a runner", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const runner = yield* start({ env: yield* tlsFiles(certified) })
      const peers = yield* Effect.all(
        Array.from({ length: runnerPort.unauthenticatedPerAddressMax + 5 }, () =>
          openPeer(runner.port)
        )
      )
      yield* Effect.all(peers.slice(0, 5).map(({ end }) => end))
      yield* runner.dial(runner.address)
    }).pipe(Effect.scoped)
  )
})

describe("runners of two releases", () => {
  it.live("refuses a runner of another protocol, and names both releases on both runners", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const older = yield* start()
      const newer = yield* start({ protocol: 2, release: "2.0.0" })
      const third = yield* start({ protocol: 2, release: "2.0.0" })
      assert.strictEqual((yield* Effect.flip(newer.dial(older.address))).reason, "version")
      const text = /Release 1\.0\.0 .*protocol 1.* cannot work with 2\.0\.0 .*protocol 2/
      yield* older.logged(text)
      assert.strictEqual(older.drains.requested, 0)
      yield* Effect.flip(older.dial(third.address))
      for (const { logged } of [newer, third]) yield* logged(text)
      assert.strictEqual(older.drains.requested, 1)
      assert.strictEqual(newer.drains.requested + third.drains.requested, 0)
      yield* assertNoneAccepted(older.accepted)
      yield* assertNoneAccepted(third.accepted)
      yield* newer.dial(third.address)
    }).pipe(Effect.scoped)
  )

  it.live("connects two runners of which only the release differs", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const older = yield* start()
      const newer = yield* start({ release: "1.1.0" })
      yield* older.dial(newer.address)
      yield* newer.dial(older.address)
    }).pipe(Effect.scoped)
  )

  it("drains the runners of an older release only once half of all are newer", () => {
    const newer = new Set(["n1", "n2"])
    assert.isFalse(shouldDrain(["o1", "o2", "o3", "n1"], new Set(["n1"])))
    assert.isTrue(shouldDrain(["o1", "o2", "n1", "n2"], newer))
    assert.isFalse(shouldDrain(["o1"], newer))
    assert.isFalse(shouldDrain([], newer))
  })
})
