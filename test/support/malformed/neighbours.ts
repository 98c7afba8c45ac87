/**
 * Healthy clients beside broken ones: two players whose messages all arrive, in their order, and a
 * server that asks over HTTP and is answered. Afterwards the service is as it was.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert } from "@effect/vitest"
import { Clock, Config, Effect, Layer, Scope } from "effect"
import { TestClock, TestConsole } from "effect/testing"
import { HttpBounds } from "#server/http/server"
import { TestApp } from "#testing/app"
import { at, newPlayer, request } from "#testing/players"
import { pause } from "#testing/socket-client"
import { DatabaseLive } from "../service.ts"

const roundMillis = 20

/** How long a storm may take, the full one included. */
export const patienceMillis = 120_000

/** What may be alive afterwards that was not before: code that was compiled, caches. */
const heapSlack = 32 * 1024 * 1024

setFlagsFromString("--expose-gc")
const collectGarbage: unknown = runInNewContext("gc")

/** The bounds of requests, ten times as short. */
const HttpBoundsLive = Layer.succeed(HttpBounds, {
  headersTimeout: 1000,
  requestTimeout: 2000,
  connectionsCheckingInterval: 100,
  keepAliveTimeout: 3000,
  timeout: 4000
})

/** A service that logs errors and nothing else. */
export const serviceWith = (env: Readonly<Record<string, string>> = {}) =>
  TestApp.layerWith({ SVC_LOG_FORMAT: "json", SVC_LOG_LEVEL: "error", ...env }).pipe(
    Layer.provide([DatabaseLive, HttpBoundsLive])
  )

/** How many clients break a bound: a tenth of the full storm, unless it is asked for. */
export const crowd = Config.withDefault(Config.Int("SVC_STORM_CLIENTS"), 1000)

/** Bytes that are alive in the process. */
const alive = Effect.sync(() => {
  if (typeof collectGarbage === "function") collectGarbage()
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
})

/** Open connections, as the service counts them. */
const connections = (url: string) =>
  Effect.map(request(`${url}/metrics`), ({ body }) =>
    Number(/^svc_connections (\d+)$/m.exec(String(body))?.[1])
  )

const playBeside = Effect.fnUntraced(function* <A, E, R>(storm: Effect.Effect<A, E, R>) {
  const app = yield* TestApp
  const clock = yield* Clock.Clock
  const ada = yield* newPlayer(app)
  const bob = yield* newPlayer(app)
  const created = yield* ada.socket.ask({ t: "create", mode: "default" })
  yield* bob.socket.ask({ t: "join", roomId: at(created, "data", "roomId") })
  let isOver = false
  let rounds = 0
  const round = Effect.gen(function* () {
    const reply = yield* ada.socket.ask({ t: "send", type: "beat", data: rounds++ })
    assert.strictEqual(reply["ok"], true)
    const headers = { "x-svc-key": app.secretKey }
    const { status } = yield* request(`${app.url}/v1/config`, { headers })
    assert.strictEqual(status, 200)
    yield* pause(roundMillis)
    // Where time is the test's, it passes with the game.
    if ("adjust" in clock) yield* TestClock.adjust(roundMillis)
    return isOver
  })
  const over = Effect.sync(() => {
    isOver = true
  })
  const [outcome] = yield* Effect.all(
    [Effect.tap(storm, over), Effect.repeat(round, { until: (over) => over })],
    { concurrency: 2 }
  )
  yield* bob.socket.next("message", (frame) => frame["data"] === rounds - 1)
  const beats = bob.socket.heard.filter((frame) => frame["type"] === "beat")
  assert.deepStrictEqual(
    beats.map((frame) => frame["data"]),
    Array.from({ length: rounds }, (_, n) => n)
  )
  return outcome
}, Effect.scoped)

/**
 * Runs a storm of broken clients beside healthy ones. The storm's connections are still open when it
 * ends: it is the service that lets go of them, and of all that they cost.
 */
export const endures = Effect.fnUntraced(function* <A, E, R>(
  storm: Effect.Effect<A, E, R | Scope.Scope>
) {
  const app = yield* TestApp
  yield* playBeside(Effect.void)
  const before = { alive: yield* alive, connections: yield* connections(app.url) }
  yield* Effect.gen(function* () {
    yield* playBeside(Scope.provide(storm, yield* Effect.scope))
    yield* app.eventually(
      Effect.map(connections(app.url), (count) => count <= before.connections),
      `${before.connections} connections are left`
    )
  }).pipe(Effect.scoped)
  assert.isBelow((yield* alive) - before.alive, heapSlack)
  assert.deepStrictEqual(yield* TestConsole.logLines, [])
})
