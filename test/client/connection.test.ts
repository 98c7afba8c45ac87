/**
 * The client's connection against a scripted service: authentication, calls, reconnects, and the
 * handling of each close code.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { WebSocket } from "ws"
import { isError } from "#client/client"
import { refusal } from "../support/client/fake-auth.ts"
import {
  heartbeat,
  joined,
  lookMillis,
  refuse,
  reply,
  type ScriptedService,
  type ScriptedSocket,
  scriptedService,
  seat,
  seated,
  stillThere
} from "../support/client/scripted-service.ts"
import { call, listen, lost, rejection, status, waitOut } from "../support/client/waits.ts"

/** Answers the client's reconnect: welcome, and the resume with this snapshot. */
const returned = Effect.fnUntraced(function* (
  service: ScriptedService,
  fields: Parameters<typeof joined>[0] = {}
) {
  const socket = yield* service.socket
  const auth = yield* socket.next
  yield* socket.welcome()
  const resume = yield* socket.next
  assert.deepStrictEqual([resume["t"], resume["roomId"]], ["resume", "rm_1"])
  yield* socket.say(joined(fields, true), reply(resume, seat))
  return { auth, socket }
})

const expectFrame = Effect.fnUntraced(function* (socket: ScriptedSocket, expected: object) {
  assert.deepStrictEqual(yield* socket.next, { ...expected })
})

describe("the client's socket", () => {
  it.effect(
    "opens the client's socket on the first call, authenticates, and sends calls after welcome",
    () =>
      Effect.gen(function* () {
        const service = yield* scriptedService
        const client = yield* service.client()
        assert.strictEqual(client.status, "offline")
        assert.deepStrictEqual(service.auth.requests, [])
        const joining = yield* call(() => client.rooms.join("7KMB2P"))
        const socket = yield* service.socket
        yield* expectFrame(socket, { t: "auth", key: "pk_test", token: "access-1" })
        assert.strictEqual(client.status, "connecting")
        yield* socket.welcome()
        const join = yield* socket.next
        assert.deepStrictEqual([join["t"], join["code"]], ["join", "7KMB2P"])
        yield* socket.say(refuse(join, "already_in_room", { roomId: "rm_2" }))
        const error = yield* Effect.flip(Fiber.join(joining))
        assert(isError(error, "already_in_room"))
        assert.strictEqual(error.details.roomId, "rm_2")
        assert.strictEqual(client.status, "online")
      }).pipe(Effect.scoped)
  )

  it.effect("delivers events right behind the reply to listeners added after await", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const client = yield* service.client()
      const heard: Array<unknown> = []
      const joining = yield* call(async () => {
        const room = await client.rooms.join("7KMB2P")
        room.on("message", ({ data }) => heard.push(data))
        return new Promise<void>((resolve) => room.on("locked", () => resolve()))
      })
      const socket = yield* service.socket
      yield* socket.next
      yield* socket.welcome()
      const join = yield* socket.next
      const message = (data: number) => ({ t: "message", from: "ada", type: "n", data, at: 0 })
      yield* socket.say(joined(), reply(join, seat), message(1), message(2))
      yield* socket.say(message(3), { t: "locked", locked: true })
      yield* Fiber.join(joining)
      assert.deepStrictEqual(heard, [1, 2, 3])
    }).pipe(Effect.scoped)
  )

  it.effect("sends messages without a reply, and confirmed ones with one", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { room, socket } = yield* seated(service)
      room.send("move", { x: 1 })
      room.setState({ round: 1 })
      yield* expectFrame(socket, { t: "send", type: "move", data: { x: 1 } })
      yield* expectFrame(socket, { t: "setState", patch: { round: 1 } })
      const sending = yield* call(() => room.confirmed.send("trade", 7, { to: ["bob"] }))
      const send = yield* socket.next
      assert.deepStrictEqual(send["to"], ["bob"])
      yield* socket.say(reply(send, { delivered: 1 }))
      assert.deepStrictEqual(yield* Fiber.join(sending), { delivered: 1 })
    }).pipe(Effect.scoped)
  )

  it.effect("emits a warning for a refused message without a call", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { room, socket } = yield* seated(service)
      const warned = yield* listen(room, "warn")
      yield* socket.say({ t: "warn", code: "host_only", message: "no" })
      assert.strictEqual((yield* Fiber.join(warned)).code, "host_only")
      const refused = yield* listen(room, "warn")
      room.send("big", 1n)
      assert.strictEqual((yield* Fiber.join(refused)).code, "invalid_frame")
    }).pipe(Effect.scoped)
  )

  it.effect("drops messages when the socket has too much unsent data", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      class SlowSocket extends WebSocket {
        constructor(url: string) {
          super(url)
          Object.defineProperty(this, "bufferedAmount", { value: 2 ** 21 })
        }
      }
      const { room } = yield* seated(service, {}, { WebSocket: SlowSocket })
      const warned = yield* listen(room, "warn")
      room.send("move")
      assert.strictEqual((yield* Fiber.join(warned)).code, "slow_connection")
    }).pipe(Effect.scoped)
  )

  it.effect("rejects calls beyond the limit of waiting calls", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const client = yield* service.client()
      for (let calls = 0; calls < 256; calls++) yield* call(() => client.rooms.join("ABCD"))
      assert.isTrue(isError(yield* rejection(() => client.rooms.join("ABCD")), "overloaded"))
    }).pipe(Effect.scoped)
  )

  it.effect("times a call out after ten seconds", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service)
      const locking = yield* call(() => room.lock())
      yield* socket.next
      for (let millis = 0; millis < 10_000; millis += lookMillis) {
        yield* TestClock.adjust(lookMillis)
        yield* stillThere(client, socket)
      }
      assert.isTrue(isError(yield* Effect.flip(Fiber.join(locking)), "timed_out"))
    }).pipe(Effect.scoped)
  )

  it.effect("sends a renewed token in band when the old one is about to expire", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, socket } = yield* seated(service)
      yield* TestClock.adjust("14 minutes")
      yield* socket.say({ t: "warn", code: "token_expiring", message: "soon" })
      yield* expectFrame(socket, { t: "auth", token: "access-2" })
      yield* socket.welcome()
      assert.strictEqual(service.sockets(), 1)
      assert.strictEqual(client.status, "online")
    }).pipe(Effect.scoped)
  )
})

describe("after a disconnect", () => {
  it.effect("resumes the seat of a client after a disconnect: same room, new snapshot", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service, { state: { round: 1 } })
      const dropped = yield* listen(room, "disconnected")
      const back = yield* listen(room, "reconnected")
      yield* socket.close()
      assert.strictEqual((yield* Fiber.join(dropped)).code, 1006)
      yield* waitOut
      yield* returned(service, { state: { round: 2 } })
      yield* Fiber.join(back)
      assert.deepStrictEqual(room.state, { round: 2 })
      assert.strictEqual(client.rooms.current, room)
      assert.isUndefined(room.closed)
    }).pipe(Effect.scoped)
  )

  it.effect("holds calls back until the seat is resumed, and drops messages with a warning", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service)
      yield* socket.close()
      yield* status(client, "connecting")
      const warned = yield* listen(room, "warn")
      room.send("lost")
      assert.strictEqual((yield* Fiber.join(warned)).code, "disconnected")
      const locking = yield* call(() => room.lock())
      yield* waitOut
      const { socket: next } = yield* returned(service)
      const lock = yield* next.next
      assert.strictEqual(lock["t"], "lock")
      yield* next.say(reply(lock))
      yield* Fiber.join(locking)
    }).pipe(Effect.scoped)
  )

  it.effect("rejects a call whose reply was lost with disconnected", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { room, socket } = yield* seated(service)
      const locking = yield* call(() => room.lock())
      yield* socket.next
      yield* socket.close(1013, "slow_consumer")
      const error = yield* Effect.flip(Fiber.join(locking))
      assert(isError(error, "disconnected"))
      assert.deepStrictEqual(
        [error.details.closeCode, error.details.reason],
        [1013, "slow_consumer"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("retries the resume while the room moves", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service)
      const back = yield* listen(room, "reconnected")
      yield* socket.close(1012, "draining")
      yield* lost(client)
      const next = yield* service.socket
      yield* next.next
      yield* next.welcome()
      yield* next.say(refuse(yield* next.next, "unavailable"))
      const resume = yield* Effect.raceFirst(next.next, Effect.forever(waitOut))
      yield* next.say(joined({}, true), reply(resume, seat))
      yield* Fiber.join(back)
    }).pipe(Effect.scoped)
  )

  it.effect("returns to the seat of a client whose first frame came too late", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service)
      const back = yield* listen(room, "reconnected")
      yield* socket.close(1012, "draining")
      yield* lost(client)
      const late = yield* service.socket
      yield* late.close(4001, "timed_out")
      const next = yield* Effect.raceFirst(service.socket, Effect.forever(waitOut))
      yield* next.next
      yield* next.welcome()
      yield* next.say(joined({}, true), reply(yield* next.next, seat))
      yield* Fiber.join(back)
    }).pipe(Effect.scoped)
  )

  it.effect("closes the room when the resume fails", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service)
      const closed = yield* listen(room, "closed")
      yield* socket.close(1012, "draining")
      yield* lost(client)
      const next = yield* service.socket
      yield* next.next
      yield* next.welcome()
      yield* next.say(refuse(yield* next.next, "resume_expired"))
      assert.deepStrictEqual(yield* Fiber.join(closed), { reason: "resume_expired" })
      assert.isNull(client.rooms.current)
      yield* status(client, "online")
    }).pipe(Effect.scoped)
  )

  it.effect("closes a silent socket after an unanswered ping", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service)
      const dropped = yield* listen(room, "disconnected")
      yield* TestClock.adjust(heartbeat * 1000 + lookMillis)
      yield* expectFrame(socket, { t: "ping", rid: "2" })
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(dropped)).code, 4008)
      yield* waitOut
      yield* returned(service)
      yield* status(client, "online")
    }).pipe(Effect.scoped)
  )

  it.effect(
    "closes a silent socket with a waiting call within seconds, unless a frame arrives",
    () =>
      Effect.gen(function* () {
        const service = yield* scriptedService
        const { client, room, socket } = yield* seated(service)
        yield* TestClock.adjust(lookMillis)
        const dropped = yield* listen(room, "disconnected")
        yield* call(() => room.lock())
        yield* expectFrame(socket, { t: "lock", rid: "2", locked: true })
        yield* TestClock.adjust(lookMillis)
        yield* expectFrame(socket, { t: "ping", rid: "3" })
        yield* stillThere(client, socket)
        yield* TestClock.adjust("3 seconds")
        assert.strictEqual(client.status, "online")
        const locked = yield* Effect.forkChild(
          rejection(() => room.lock(false)),
          { startImmediately: true }
        )
        yield* expectFrame(socket, { t: "lock", rid: "4", locked: false })
        yield* TestClock.adjust(lookMillis)
        yield* expectFrame(socket, { t: "ping", rid: "5" })
        yield* TestClock.adjust("3 seconds")
        assert.strictEqual((yield* Fiber.join(dropped)).code, 4008)
        assert.isTrue(isError(yield* Fiber.join(locked), "disconnected"))
        yield* waitOut
        yield* returned(service)
        yield* status(client, "online")
      }).pipe(Effect.scoped)
  )
})

describe("after close code", () => {
  it.effect("reconnects within a second after close code 1012", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, socket } = yield* seated(service)
      yield* socket.close(1012, "draining")
      yield* lost(client)
      yield* returned(service)
      yield* status(client, "online")
    }).pipe(Effect.scoped)
  )

  it.effect("refreshes the access token before the client reconnects after close code 4002", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { socket } = yield* seated(service)
      yield* socket.close(4002, "token_expired")
      const { auth } = yield* returned(service)
      assert.strictEqual(auth["token"], "access-2")
    }).pipe(Effect.scoped)
  )

  for (const [code, reason] of [
    [4003, "player_banned"],
    [4004, "replaced"]
  ] as const) {
    it.effect(`opens no socket after close code ${code} until the next call`, () =>
      Effect.gen(function* () {
        const service = yield* scriptedService
        const { client, room, socket } = yield* seated(service)
        const closed = yield* listen(room, "closed")
        yield* socket.close(code, reason)
        assert.deepStrictEqual(yield* Fiber.join(closed), { code, reason })
        yield* status(client, "offline")
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(service.sockets(), 1)
        assert.isTrue(isError(yield* rejection(() => room.lock()), "not_in_room"))
        yield* call(() => client.rooms.quickMatch("default"))
        yield* service.socket
        assert.strictEqual(service.sockets(), 2)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("finds out after close code 4001 whether the client's session has ended", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, socket } = yield* seated(service)
      service.auth.instead("POST /v1/auth/refresh", () => refusal(401, "session_revoked"))
      const changed = yield* Effect.forkChild(
        Effect.callback<unknown>((resume) => {
          client.sessions.onChange((player) => resume(Effect.succeed(player)))
        }),
        { startImmediately: true }
      )
      yield* socket.close(4001, "session_revoked")
      assert.isNull(yield* Fiber.join(changed))
    }).pipe(Effect.scoped)
  )
})
