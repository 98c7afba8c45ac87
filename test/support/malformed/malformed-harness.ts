/**
 * Runs malformed clients beside healthy ones: two players in a room and a game server that calls the
 * HTTP API. Checks that every message of the healthy players arrives in order, that the service frees
 * all connections and memory, and that it logs no error.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert } from "@effect/vitest"
import { Clock, Config, Effect, Layer, Scope } from "effect"
import { TestClock, TestConsole } from "effect/testing"
import { HttpBounds } from "#server/http/server"
import { monotonicMillis } from "#entities/monotonic"
import { TestApp } from "#testing/app"
import { newPlayer, request } from "#testing/players"
import { pause } from "#testing/socket-client"
import { DatabaseLive } from "../service.ts"
import { openRoom } from "../opened-room.ts"

const roundMillis = 20

/** A client ends a connection that was idle for two of the three seconds for which the service keeps it. */
const idleMillis = 1900

/** Test timeout, long enough for the full load (`SVC_STORM_CLIENTS=10000`). */
export const testTimeoutMillis = 120_000

/** Allowed growth of the heap: compiled code and caches. */
const heapSlack = 32 * 1024 * 1024

setFlagsFromString("--expose-gc")
const collectGarbage: unknown = runInNewContext("gc")

/** The time limits of HTTP requests, about a tenth of those in production. */
const HttpBoundsLive = Layer.succeed(HttpBounds, {
  headersTimeout: 1000,
  requestTimeout: 2000,
  bodyTimeout: 1500,
  responseTimeout: 3000,
  connectionsCheckingInterval: 100,
  keepAliveTimeout: 3000,
  timeout: 4000
})

/** A service that logs errors only. */
export const serviceWith = (env: Readonly<Record<string, string>> = {}) =>
  TestApp.layerWith({ SVC_LOG_FORMAT: "json", SVC_LOG_LEVEL: "error", ...env }).pipe(
    Layer.provide([DatabaseLive, HttpBoundsLive])
  )

/** The number of malformed clients; `SVC_STORM_CLIENTS` overrides it. */
export const clientCount = Config.withDefault(Config.Int("SVC_STORM_CLIENTS"), 1000)

/** Bytes that are reachable after a garbage collection. */
const heapBytes = Effect.sync(() => {
  if (typeof collectGarbage === "function") collectGarbage()
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
})

/** The number of open connections, from the metrics of the service. */
const openConnections = (url: string) =>
  Effect.map(request(`${url}/metrics`), ({ body }) =>
    Number(/^svc_connections (\d+)$/m.exec(String(body))?.[1])
  )

/** Runs `attack` while healthy clients play, and checks that each of their messages arrives in order. */
const withHealthyClients = Effect.fnUntraced(function* <A, E, R>(attack: Effect.Effect<A, E, R>) {
  const app = yield* TestApp
  const clock = yield* Clock.Clock
  const ada = yield* newPlayer(app)
  const bob = yield* newPlayer(app)
  yield* openRoom([ada, bob])
  let isOver = false
  let rounds = 0
  const now = monotonicMillis(Clock.Clock.defaultValue())
  const readConfig = request(`${app.url}/v1/config`, { headers: { "x-svc-key": app.secretKey } })
  let readAt = now()
  /** On a machine so busy that its idle connection has ended, a client may have to wait for another one. */
  const readConfigWhenOpen = Effect.sandbox(readConfig).pipe(
    Effect.tapError(() => pause(roundMillis)),
    Effect.retry({ while: () => now() - readAt > idleMillis, times: 3000 }),
    Effect.orDie
  )
  const round = Effect.gen(function* () {
    const reply = yield* ada.socket.request({ t: "send", type: "beat", data: rounds++ })
    assert.strictEqual(reply["ok"], true)
    const { status } = yield* readConfigWhenOpen
    assert.strictEqual(status, 200)
    readAt = now()
    yield* pause(roundMillis)
    // A test clock advances with the rounds.
    if ("adjust" in clock) yield* TestClock.adjust(roundMillis)
    return isOver
  })
  const end = Effect.sync(() => {
    isOver = true
  })
  const [outcome] = yield* Effect.all(
    [Effect.tap(attack, end), Effect.repeat(round, { until: (over) => over })],
    { concurrency: 2 }
  )
  yield* bob.socket.next("message", (frame) => frame["data"] === rounds - 1)
  const beats = bob.socket.received.filter((frame) => frame["type"] === "beat")
  assert.deepStrictEqual(
    beats.map((frame) => frame["data"]),
    Array.from({ length: rounds }, (_, n) => n)
  )
  return outcome
}, Effect.scoped)

/**
 * Checks that the service survives an attack of malformed clients. The connections of the attack stay
 * open when it ends, so the service itself must close them and free what they used.
 */
export const assertSurvives = Effect.fnUntraced(function* <A, E, R>(
  attack: Effect.Effect<A, E, R | Scope.Scope>
) {
  const app = yield* TestApp
  // Warms up caches and compiled code before the heap is measured.
  yield* withHealthyClients(Effect.void)
  const before = { heap: yield* heapBytes, connections: yield* openConnections(app.url) }
  yield* Effect.gen(function* () {
    yield* withHealthyClients(Scope.provide(attack, yield* Effect.scope))
    yield* app.eventually(
      // Refused while connections of the attack take every place.
      Effect.map(Effect.sandbox(openConnections(app.url)), (count) => count <= before.connections),
      `the service has ${before.connections} open connections again`
    )
  }).pipe(Effect.scoped)
  // Buffers of closed sockets are freed some turns after their sockets.
  yield* app.eventually(
    Effect.map(heapBytes, (bytes) => bytes - before.heap < heapSlack),
    `the heap has grown by less than ${heapSlack} bytes`
  )
  assert.deepStrictEqual(yield* TestConsole.logLines, [])
})
