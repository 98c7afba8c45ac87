/**
 * Back-pressure: a client that reads too slowly, or sends too much, is closed at its bound, and no other
 * client misses a message.
 */
import { Duplex } from "node:stream"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { outboxMaxBytes } from "#rpc/client-limits"
import { OutboxBudget } from "#server/platform/outbox-budget"
import { Frame, Outbox, WriteStats } from "#server/platform/socket-outbox"
import { FrameBucket } from "#server/platform/frame-bucket"
import { socketLimits } from "#server/platform/socket-limits"
import { TestApp } from "#testing/app"
import { at, guest, newPlayer } from "#testing/players"
import { connectNative } from "../support/native-socket.ts"
import { AppLive } from "../support/service.ts"
import { openRoom } from "../support/opened-room.ts"

/** A socket whose client does not read: accepts every write and completes none. */
const stuck = () => new Duplex({ read: () => undefined, write: () => undefined })

const ownerThat = (closeSlow: () => void) => ({
  budget: new OutboxBudget(Number.POSITIVE_INFINITY),
  owner: { environmentId: "env", isClosed: false, closeSlow, cut: () => undefined }
})

describe("an outbox", () => {
  const frame = new Frame("x".repeat(16_000))
  const fits = Math.floor(outboxMaxBytes / frame.bytes.length)

  const fill = (flushEvery: number) => {
    const socket = stuck()
    const overflows: Array<number> = []
    let pushed = 0
    const outbox = new Outbox({
      socket,
      scheduler: { scheduleOutput: () => undefined },
      stats: new WriteStats(),
      ...ownerThat(() => overflows.push(pushed))
    })
    for (pushed = 1; pushed <= fits + 100; pushed++) {
      outbox.push(frame)
      if (pushed % flushEvery === 0) outbox.flush()
    }
    return { overflows, waiting: socket.writableLength }
  }

  it("overflows an outbox once, at the first frame beyond the limit", () => {
    assert.deepStrictEqual(fill(Number.POSITIVE_INFINITY).overflows, [fits + 1])
  })

  it("counts the bytes that the socket has not sent, and stops writing at the limit", () => {
    const { overflows, waiting } = fill(1)
    assert.deepStrictEqual(overflows, [fits + 1])
    assert.strictEqual(waiting, fits * frame.bytes.length)
  })
})

describe("an outbox whose client does not read", () => {
  it("counts what each waiting write takes beside its bytes, until the client has read it", () => {
    const completions: Array<() => void> = []
    const socket = new Duplex({
      read: () => undefined,
      write: (_bytes, _encoding, done) => void completions.push(done)
    })
    const outbox = new Outbox({
      socket,
      scheduler: { scheduleOutput: () => undefined },
      stats: new WriteStats(),
      ...ownerThat(() => undefined)
    })
    const frame = new Frame("ping")
    for (let n = 0; n < 100; n++) {
      outbox.push(frame)
      outbox.flush()
    }
    const waiting = 100 * frame.bytes.length + 99 * socketLimits.queuedWriteBytes
    assert.strictEqual(outbox.waitingBytes, waiting)
    for (let n = 0; n < 100; n++) completions[n]?.()
    assert.strictEqual(outbox.waitingBytes, 0)
  })
})

describe("an outbox that gets a frame larger than its limit", () => {
  const small = new Frame("x".repeat(16_000))
  const huge = new Frame("x".repeat(outboxMaxBytes + 100_000))

  it("sends one frame over the limit with those that follow, and overflows at a second", () => {
    const overflows: Array<string> = []
    let pushed = ""
    const outbox = new Outbox({
      socket: stuck(),
      scheduler: { scheduleOutput: () => undefined },
      stats: new WriteStats(),
      ...ownerThat(() => overflows.push(pushed))
    })
    for (pushed of ["huge", "small"]) outbox.push(pushed === "huge" ? huge : small)
    assert.deepStrictEqual(overflows, [])
    pushed = "huge again"
    outbox.push(huge)
    assert.deepStrictEqual(overflows, ["huge again"])
  })
})

describe("a bucket of tokens for frames", () => {
  it("drops frames beyond the burst, and reports abuse at its bound", () => {
    const bucket = new FrameBucket(0)
    for (let i = 0; i < socketLimits.framesBurst; i++) assert.isTrue(bucket.take(0))
    for (let i = 1; i <= socketLimits.dropsUntilAbuse; i++) {
      assert.isFalse(bucket.take(0))
      assert.strictEqual(bucket.drop(0), i === socketLimits.dropsUntilAbuse)
    }
  })

  it("forgets drops of an earlier window, and refills", () => {
    const bucket = new FrameBucket(0, 1, 1)
    for (let i = 1; i < socketLimits.dropsUntilAbuse; i++) bucket.drop(0)
    const later = socketLimits.dropsWindowSeconds * 1000 + 1
    assert.isFalse(bucket.drop(later))
    assert.isTrue(bucket.take(later))
    assert.isFalse(bucket.take(later + 999))
    assert.isTrue(bucket.take(later + 1000))
  })
})

/** Three players in one room. */
const threeInARoom = Effect.gen(function* () {
  const app = yield* TestApp
  const ada = yield* newPlayer(app)
  const bob = yield* newPlayer(app)
  const cyd = yield* newPlayer(app)
  yield* openRoom([ada, bob, cyd])
  return { ada: ada.socket, bob: bob.socket, cyd: cyd.socket, adaId: ada.id, bobId: bob.id }
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("back-pressure", (it) => {
  it.effect(
    "closes a client that stops reading with 1013 at the bound; no other client misses a message",
    () =>
      Effect.gen(function* () {
        const { ada, adaId, bob, bobId, cyd } = yield* threeInARoom
        bob.ws.pause()
        const padding = "x".repeat(16_000)
        const sent: Array<number> = []
        const hasLeft = () => ada.received.some((frame) => frame.t === "player_disconnected")
        for (let n = 0; !hasLeft(); n++) {
          assert.isBelow(n, 10_000, "bob is still in")
          // Slower than the rate limit of a socket.
          const reply = yield* Effect.delay(
            ada.request({ t: "send", type: "flood", data: { n, padding } }),
            "12 millis"
          )
          if (reply["ok"] === true) sent.push(n)
        }
        bob.ws.resume()
        assert.deepStrictEqual(yield* bob.closed, { code: 1013, reason: "slow_consumer" })
        yield* ada.request({ t: "send", type: "last" })
        yield* cyd.next("message", (frame) => frame["type"] === "last")
        const numbers = (frames: typeof cyd.received) =>
          frames
            .filter((frame) => frame["type"] === "flood" && frame["from"] === adaId)
            .map((frame) => at(frame, "data", "n"))
        assert.deepStrictEqual(numbers(cyd.received), sent)
        const read = numbers(bob.received)
        assert.deepStrictEqual(read, sent.slice(0, read.length), "bob read what was sent, in order")
        assert.isBelow(read.length, sent.length + 1)
        const left = cyd.received.find((frame) => frame.t === "player_disconnected")
        assert.strictEqual(at(left, "playerId"), bobId)
      })
  )

  it.effect("closes a client of the other endpoint that acknowledges no event with 1013", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const { roomId } = yield* openRoom([ada])
      const bob = yield* guest(app)
      const native = yield* connectNative(app.url)
      yield* native.open({
        "x-svc-key": app.publishableKey,
        authorization: `Bearer ${bob.accessToken}`
      })
      yield* native.call("join", { roomId })
      const data = "x".repeat(16_000)
      const fits = Math.floor(outboxMaxBytes / data.length)
      const hasLeft = () => ada.socket.received.some((frame) => frame.t === "player_disconnected")
      for (let n = 0; !hasLeft(); n++) {
        assert.isBelow(n, 2 * fits, "the client is still in")
        yield* ada.socket.request({ t: "send", type: "flood", to: [bob.id], data })
      }
      const closed = yield* native.socket.closed
      assert.deepStrictEqual([closed.code, closed.reason], [1013, "slow_consumer"])
    })
  )

  it.effect(
    "warns a client that sends too much, then closes it with 4029; no other client misses a message",
    () =>
      Effect.gen(function* () {
        const { ada, adaId, bob, bobId, cyd } = yield* threeInARoom
        const sent = Array.from({ length: 100 }, (_, n) => n)
        for (let i = 0; i < 1000; i++) {
          yield* bob.send({ t: "send", type: "flood", data: i, rid: `${i}` })
          if (i % 10 === 0) yield* ada.send({ t: "send", type: "own", data: i / 10 })
        }
        assert.deepStrictEqual(yield* bob.closed, { code: 4029, reason: "rate_limited" })
        yield* ada.request({ t: "send", type: "last" })
        yield* cyd.next("message", (frame) => frame["type"] === "last")
        const receivedFrom = (from: string) =>
          cyd.received
            .filter((frame) => frame.t === "message" && frame["from"] === from)
            .filter((frame) => frame["type"] !== "last")
            .map((frame) => Number(frame["data"]))
        assert.deepStrictEqual(receivedFrom(adaId), sent)
        const replies = bob.received.filter((frame) => frame.t === "reply" && "rid" in frame)
        const limited = replies.filter((reply) => at(reply, "error", "code") === "rate_limited")
        assert.isAtLeast(limited.length, 1)
        assert.isBelow(limited.length, socketLimits.dropsUntilAbuse)
        assert.isNumber(at(limited[0], "error", "details", "retryAfterSeconds"))
        const flood = receivedFrom(bobId)
        assert.isAtLeast(flood.length, socketLimits.framesBurst - 2)
        assert.isBelow(flood.length, 1000 - socketLimits.dropsUntilAbuse)
        const inOrder = flood.toSorted((a, b) => a - b)
        assert.deepStrictEqual(flood, inOrder)
      })
  )
})
