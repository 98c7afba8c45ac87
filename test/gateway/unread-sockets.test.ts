/**
 * Sockets that do not read, while the budget of all sockets of the node is exhausted: the environment with
 * the most unread bytes loses sockets, and rooms of the other miss nothing.
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { outboxMaxBytes } from "#rpc/client-limits"
import { OutboxesMaxBytes } from "#server/gateway/gateway"
import { TestApp } from "#testing/app"
import { configure, newPlayer, type TestTarget } from "#testing/players"
import { readMetric } from "../support/metrics.ts"
import { live } from "../support/security/security-harness.ts"
import { DatabaseLive } from "../support/service.ts"
import { openRoom } from "../support/opened-room.ts"

const budget = 512 * 1024

const App = TestApp.layerWith().pipe(
  Layer.provide([DatabaseLive, Layer.succeed(OutboxesMaxBytes, budget)])
)

/** A sender and a receiver in one room. */
const pairIn = Effect.fnUntraced(function* (target: TestTarget) {
  const sender = yield* newPlayer(target)
  const receiver = yield* newPlayer(target)
  yield* openRoom([sender, receiver])
  return { sender: sender.socket, receiver: receiver.socket }
})

layer(App, live)("sockets that do not read", (it) => {
  it.effect(
    "closes a socket that does not read at the node's budget, and serves rooms of another game",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* configure(app.production, { features: { multiplayer: true } })
        const flooded = yield* pairIn(app)
        const other = yield* pairIn(app.production)
        flooded.receiver.ws.pause()
        const padding = "x".repeat(16_000)
        const hasLeft = () => flooded.sender.received.some(({ t }) => t === "player_disconnected")
        const sent: Array<number> = []
        let max = 0
        const quiet = yield* Effect.forkChild(
          Effect.gen(function* () {
            for (let n = 0; !hasLeft(); n++) {
              yield* Effect.delay(
                other.sender.request({ t: "send", type: "own", data: n }),
                "30 millis"
              )
              sent.push(n)
            }
          })
        )
        for (let n = 0; !hasLeft(); n++) {
          assert.isBelow(n, 10_000, "the receiver is still in")
          yield* Effect.delay(
            flooded.sender.request({ t: "send", type: "flood", data: { n, padding } }),
            "12 millis"
          )
          max = Math.max(max, yield* readMetric(app.url, "svc_socket_unsent_bytes"))
        }
        assert.isAtMost(max, budget)
        assert.isBelow(max, outboxMaxBytes)
        yield* Fiber.join(quiet)
        flooded.receiver.ws.resume()
        const { code } = yield* flooded.receiver.closed
        // The close frame follows what was not read, unless the connection had to be cut before.
        assert.oneOf(code, [1013, 1006])
        yield* other.sender.request({ t: "send", type: "last" })
        yield* other.receiver.next("message", (frame) => frame["type"] === "last")
        const received = other.receiver.received.filter((frame) => frame["type"] === "own")
        assert.deepStrictEqual(
          received.map((frame) => Number(frame["data"])),
          sent
        )
      })
  )
})
