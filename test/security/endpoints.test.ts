/**
 * One set of bounds for both endpoints: what `/v1/realtime` refuses to a client, `/v1/rpc` refuses alike,
 * from the first frame on and with the same codes.
 */
import { once } from "node:events"
import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { roomCodeThrottles } from "#server/features/rooms/frames"
import { socketLimits } from "#server/platform/socket-limits"
import { TestApp } from "#testing/app"
import { at, configure, guest, newPlayer } from "#testing/players"
import { connectSocket, type SocketClient } from "#testing/socket-client"
import { connectNative } from "../support/native-socket.ts"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"
import { AppLive } from "../support/service.ts"

/** Calls beyond the burst, the refill of ten seconds and the drops that are abuse. */
const flood =
  socketLimits.framesBurst + 10 * socketLimits.framesPerSecond + 2 * socketLimits.dropsUntilAbuse

const answersOf = ({ received }: SocketClient, code: string) =>
  received.filter((message) => at(message, "exit", "cause", 0, "error", "_tag") === code).length

layer(SecurityAppLive(), live)("both endpoints", (it) => {
  it.effect("closes a client that calls without credentials far too often, with 4029", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { send, socket } = yield* connectNative(app.url)
      for (let i = 0; i < flood; i++) yield* send("ping")
      const closed = yield* socket.closed
      assert.deepStrictEqual([closed.code, closed.reason], [4029, "rate_limited"])
      assert.isAtLeast(answersOf(socket, "unauthorized"), socketLimits.framesBurst)
      assert.isBelow(
        answersOf(socket, "unauthorized"),
        socketLimits.framesBurst + socketLimits.dropsUntilAbuse
      )
      assert.isAtMost(answersOf(socket, "rate_limited"), socketLimits.dropsUntilAbuse)
    })
  )

  it.effect("closes a player that calls far too often, also with calls in one message", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app)
      const { open, socket } = yield* connectNative(app.url)
      yield* open({
        "x-svc-key": app.publishableKey,
        authorization: `Bearer ${ada.accessToken}`
      })
      const call = (id: number) => ({
        _tag: "Request",
        id,
        tag: "ping",
        payload: null,
        headers: []
      })
      for (let from = 1000; from < 1000 + flood; from += 100) {
        yield* socket.send(Array.from({ length: 100 }, (_, index) => call(from + index)))
      }
      assert.strictEqual((yield* socket.closed).code, 4029)
      assert.isAtMost(answersOf(socket, "rate_limited"), socketLimits.dropsUntilAbuse)
    })
  )

  it.effect("counts acknowledgements that nothing asked for, and messages that are no calls", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      for (const message of [
        { _tag: "Ack", requestId: "1" },
        { _tag: "Ping" },
        null,
        [1],
        "text"
      ]) {
        const { socket } = yield* connectNative(app.url)
        for (let i = 0; i < flood; i++) yield* socket.sendText(JSON.stringify(message))
        assert.strictEqual((yield* socket.closed).code, 4029, JSON.stringify(message))
      }
      const binary = yield* connectNative(app.url)
      yield* Effect.sync(() => binary.socket.ws.send(Buffer.from("x")))
      const closed = yield* binary.socket.closed
      assert.deepStrictEqual([closed.code, closed.reason], [1003, "binary_not_supported"])
    })
  )

  it.effect("closes a client with refused credentials as the other endpoint does", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { publishableKey: key } = app
      for (const [headers, code] of [
        [{}, "4001 invalid_key"],
        [{ "x-svc-key": key }, "4001 unauthorized"],
        [{ "x-svc-key": key, authorization: "Bearer nonsense" }, "4001 unauthorized"],
        [{ "x-svc-key": app.secretKey }, "4001 player_required"]
      ] as const) {
        const { call, socket } = yield* connectNative(app.url)
        assert.strictEqual(`4001 ${yield* call("events", null, headers)}`, code)
        const closed = yield* socket.closed
        assert.strictEqual(`${closed.code} ${closed.reason}`, code)
      }
    })
  )

  it.effect("opens one events stream for each socket", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const [ada, bob] = yield* Effect.all([guest(app), guest(app)])
      const headersOf = ({ accessToken }: typeof ada) => ({
        "x-svc-key": app.publishableKey,
        authorization: `Bearer ${accessToken}`
      })
      const { call, open, socket } = yield* connectNative(app.url)
      const first = yield* open(headersOf(ada))
      assert.strictEqual(yield* call("events", null, headersOf(bob)), "unauthorized")
      assert.strictEqual(yield* call("ping"), "ok")
      yield* socket.send({ _tag: "Interrupt", requestId: first })
      yield* open(headersOf(bob))
      assert.strictEqual(yield* call("ping"), "ok")
    })
  )
})

layer(SecurityAppLive({ SVC_THROTTLES: "on" }), live)("guesses of room codes", (it) => {
  it.effect("counts the wrong codes of an address over both endpoints together", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, { features: { multiplayer: true } })
      const { burst } = roomCodeThrottles.wrongRoomCodesPerAddress
      const perPlayer = roomCodeThrottles.roomCodesPerPlayer.burst - 5
      const codes: Array<string> = []
      for (let sent = 0; sent <= burst; sent += perPlayer) {
        const player = yield* guest(app)
        const { call, open } = yield* connectNative(app.url)
        yield* open({
          "x-svc-key": app.publishableKey,
          authorization: `Bearer ${player.accessToken}`
        })
        for (let i = 0; i < perPlayer; i++)
          codes.push(yield* call("join", { code: `WRONG${sent + i}` }))
      }
      assert.include(codes, "rate_limited")
      assert.isAtMost(codes.filter((code) => code === "room_not_found").length, burst + 5)
      const { socket } = yield* newPlayer(app)
      const json = yield* socket.request({ t: "join", code: "WRONG1" })
      assert.strictEqual(at(json, "error", "code"), "rate_limited")
    })
  )
})

describe("late credentials", () => {
  layer(AppLive, { timeout: "120 seconds" })("on a test clock", (it) => {
    it.effect("closes a silent client of either endpoint after five seconds, not after six", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        for (const path of ["/v1/realtime", "/v1/rpc"]) {
          yield* TestClock.adjust("500 millis")
          const socket = yield* connectSocket(`${app.url.replace("http", "ws")}${path}`)
          yield* TestClock.adjust("4999 millis")
          // The pong follows what the service sends at that time.
          yield* Effect.sync(() => socket.ws.ping())
          yield* Effect.promise(() => once(socket.ws, "pong"))
          assert.strictEqual(socket.ws.readyState, socket.ws.OPEN, path)
          yield* TestClock.adjust("1 millis")
          assert.deepStrictEqual(yield* socket.closed, { code: 4001, reason: "timed_out" }, path)
        }
      })
    )
  })
})
