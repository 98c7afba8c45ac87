/** The service on a test clock: tokens expire and queues time out without real delays. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { TestApp } from "#testing/app"
import { at, guest, newPlayer, request } from "#testing/players"
import { AppLive } from "../support/service.ts"

layer(AppLive, { timeout: "120 seconds" })("virtual time", (it) => {
  it.effect("expires an access token after fifteen minutes", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const player = yield* guest(app)
      const me = request(`${app.url}/v1/players/me`, {
        headers: {
          "x-svc-key": app.publishableKey,
          authorization: `Bearer ${player.accessToken}`
        }
      })
      assert.strictEqual((yield* me).status, 200)
      yield* TestClock.adjust("15 minutes")
      const expired = yield* me
      assert.strictEqual(expired.status, 401)
      assert.strictEqual(at(expired.body, "error", "code"), "token_expired")
      const late = yield* app.online(player)
      const closed = yield* late.socket.closed
      assert.deepStrictEqual([closed.code, closed.reason], [4002, "token_expired"])
    })
  )

  it.effect("gives a player alone in a queue a room after the fill timeout of the mode", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { socket } = yield* newPlayer(app)
      yield* socket.send({ t: "quickMatch", rid: "match", mode: "default" })
      yield* socket.request({ t: "ping" })
      yield* TestClock.adjust("14 seconds")
      yield* socket.request({ t: "ping" })
      assert.isFalse(socket.received.some((frame) => frame.t === "room_joined"))
      yield* app.eventually(
        Effect.gen(function* () {
          yield* TestClock.adjust("1 second")
          return socket.received.some((frame) => frame["rid"] === "match")
        }),
        "the match is made"
      )
      const joined = yield* socket.next("room_joined")
      assert.lengthOf(Object(at(joined, "room", "players")), 1)
    })
  )
})
