/**
 * Frames that arrive before the replies to earlier ones: they wait for the welcome, run in their order,
 * and cannot be used to guess a room's code.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { frameMaxBytes } from "#rpc/client-limits"
import { roomCodeThrottles } from "#server/features/rooms/frames"
import { socketLimits } from "#server/platform/socket-limits"
import { TestApp } from "#testing/app"
import { at, guest, newPlayer, request } from "#testing/players"
import { connectSocket } from "#testing/socket-client"
import { AppLive, DatabaseLive } from "../support/service.ts"
import { openRoom } from "../support/opened-room.ts"

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })(
  "a client that does not wait for replies",
  (it) => {
    it.effect("replies in order to all frames that a client sends right after `auth`", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const { accessToken } = yield* guest(app)
        const socket = yield* connectSocket(app.socketUrl)
        const key = app.publishableKey
        yield* socket.send({ t: "auth", rid: "auth", key, token: accessToken })
        yield* socket.send({ t: "create", rid: "one", mode: "default" })
        yield* socket.send({ t: "leave", rid: "two" })
        yield* socket.send({ t: "create", rid: "three", mode: "default" })
        yield* socket.send({ t: "create", rid: "four", mode: "default" })
        yield* socket.next("reply", (frame) => frame["rid"] === "four")
        const order = socket.received
          .filter(({ t }) => t === "welcome" || t === "reply")
          .map(({ ok, rid, t }) => (t === "reply" ? `${String(rid)} ${String(ok)}` : t))
        assert.deepStrictEqual(order, [
          "welcome",
          "auth true",
          "one true",
          "two true",
          "three true",
          "four false"
        ])
      })
    )

    it.effect("closes a client that sends too much before its admission", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const { accessToken } = yield* guest(app)
        const key = app.publishableKey
        const auth = { t: "auth", key, token: accessToken }
        const many = yield* connectSocket(app.socketUrl)
        const frames = Array.from({ length: socketLimits.earlyFramesMax + 1 }, () => ({
          t: "ping"
        }))
        yield* Effect.forEach([auth, ...frames], many.send, { discard: true })
        assert.strictEqual((yield* many.closed).code, 4029)
        const large = yield* connectSocket(app.socketUrl)
        const half = { t: "send", type: "x", data: "x".repeat(frameMaxBytes / 2) }
        yield* Effect.forEach([auth, half, half], large.send, { discard: true })
        assert.strictEqual((yield* large.closed).code, 4029)
      })
    )

    it.effect("cancels a match right after the client has requested it", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const { socket } = yield* newPlayer(app)
        yield* socket.send({ t: "quickMatch", rid: "match", mode: "default" })
        const cancelled = yield* socket.request({ t: "cancelMatch" })
        assert.deepStrictEqual(cancelled["data"], { cancelled: true })
        const ended = yield* socket.next("reply", (frame) => frame["rid"] === "match")
        assert.strictEqual(at(ended, "error", "code"), "match_cancelled")
      })
    )

    it.effect("refuses a frame for a room that follows `leave` at once", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const { socket } = yield* newPlayer(app)
        yield* socket.request({ t: "create", mode: "default" })
        yield* socket.send({ t: "leave", rid: "leave" })
        const late = yield* socket.request({ t: "setState", patch: {} })
        assert.strictEqual(at(late, "error", "code"), "not_in_room")
      })
    )
  }
)

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("a new token", (it) => {
  it.effect("repeats the kept seat in its welcome until the player takes it", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const { roomId } = yield* openRoom([ada])
      yield* ada.socket.terminate
      const { socket } = yield* app.online(ada)
      const { body } = yield* request(`${app.url}/v1/auth/refresh`, {
        headers: { "x-svc-key": app.publishableKey },
        body: { refreshToken: ada.refreshToken }
      })
      const token = at(body, "accessToken")
      yield* socket.next("welcome")
      yield* socket.request({ t: "auth", token })
      assert.strictEqual(at(yield* socket.next("welcome"), "rooms", 0, "roomId"), roomId)
      yield* socket.request({ t: "resume", roomId })
      yield* socket.request({ t: "auth", token })
      assert.deepStrictEqual(at(yield* socket.next("welcome"), "rooms"), [])
    })
  )
})

const Throttled = TestApp.layerWith({ SVC_THROTTLES: "on" }).pipe(Layer.provide(DatabaseLive))

layer(Throttled, { timeout: "120 seconds", excludeTestServices: true })("room codes", (it) => {
  it.effect("limits the rate of wrong room codes, so that nobody guesses one", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { socket } = yield* newPlayer(app)
      const { burst, seconds } = roomCodeThrottles.roomCodesPerPlayer
      const started = yield* Clock.currentTimeMillis
      // While the answers are slow, the bucket refills: then more codes than `burst` get one.
      let wrong = 0
      let error: unknown = "room_not_found"
      while (error === "room_not_found") {
        error = at(yield* socket.request({ t: "join", code: `NONE${wrong}` }), "error", "code")
        if (error === "room_not_found") wrong += 1
      }
      const elapsed = ((yield* Clock.currentTimeMillis) - started) / 1000
      assert.strictEqual(error, "rate_limited")
      assert.isAtLeast(wrong, burst)
      assert.isAtMost(wrong, burst + Math.ceil((elapsed * burst) / seconds))
    })
  )
})
