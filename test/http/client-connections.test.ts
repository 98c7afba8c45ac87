/** The limit of connections of one client address, with and without a trusted proxy. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestApp } from "#testing/app"
import {
  openRawConnection,
  type ResponseSummary,
  responsesIn
} from "../support/malformed/raw-connection.ts"
import { DatabaseLive } from "../support/service.ts"

const limit = 5
const env = { SVC_THROTTLES: "on", SVC_CONNECTIONS_PER_ADDRESS: `${limit}` }
const live = { timeout: "60 seconds", excludeTestServices: true } as const

const appWith = (own: Readonly<Record<string, string>>) =>
  TestApp.layerWith({ ...env, ...own }).pipe(Layer.provide(DatabaseLive))

const refused: ReadonlyArray<ResponseSummary> = [[429, "rate_limited"]]

/** Opens a connection, and sends a request that ends at once. */
const health = (url: string, headers = "") =>
  Effect.gen(function* () {
    const connection = yield* openRawConnection(url)
    connection.send(`GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n`)
    yield* connection.ended
    return responsesIn(connection.received)
  }).pipe(Effect.scoped)

const answers = (url: string, headers: string, expected: ReadonlyArray<unknown>) =>
  Effect.flatMap(TestApp, ({ eventually }) =>
    eventually(
      Effect.map(
        health(url, headers),
        (responses) => JSON.stringify(responses) === JSON.stringify(expected)
      ),
      `the response is ${JSON.stringify(expected)}`
    )
  )

layer(appWith({}), live)("connections of one address", (it) => {
  it.effect("refuses the connection beyond the limit until one closes", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      const connections = yield* Effect.forEach(Array.from({ length: limit }), () =>
        openRawConnection(url)
      )
      assert.deepStrictEqual(yield* health(url), refused)
      // Without a trusted proxy, the header of a client means nothing.
      assert.deepStrictEqual(yield* health(url, "X-Forwarded-For: 192.0.2.1\r\n"), refused)
      connections[0]?.reset()
      yield* answers(url, "", [[200]])
    }).pipe(Effect.scoped)
  )
})

layer(appWith({ SVC_TRUSTED_PROXIES: "127.0.0.1" }), live)("behind a trusted proxy", (it) => {
  const client = (address: string): string => `X-Forwarded-For: ${address}\r\n`

  /** A request that does not end. */
  const unfinished = (publishableKey: string, headers: string): string =>
    `POST /v1/auth/guest HTTP/1.1\r\nHost: a\r\nX-Svc-Key: ${publishableKey}\r\n${headers}` +
    "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{"

  /** A WebSocket that does not authenticate yet. */
  const upgrade = (path: string, headers: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}` +
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

  it.effect("counts requests and WebSockets of each client, not connections of the proxy", () =>
    Effect.gen(function* () {
      const { publishableKey, url } = yield* TestApp
      const idle = yield* Effect.forEach(Array.from({ length: 4 * limit }), () =>
        openRawConnection(url)
      )
      assert.deepStrictEqual(yield* health(url), [[200]])
      const ada = client("192.0.2.1")
      const sent = [
        unfinished(publishableKey, ada),
        unfinished(publishableKey, ada),
        unfinished(publishableKey, ada),
        upgrade("/v1/realtime", ada),
        upgrade("/v1/rpc", ada)
      ]
      for (const [index, bytes] of sent.entries()) idle[index]?.send(bytes)
      yield* answers(url, ada, refused)
      const socket = yield* openRawConnection(url)
      socket.send(upgrade("/v1/realtime", ada))
      yield* socket.ended
      assert.deepStrictEqual(responsesIn(socket.received), refused)
      assert.deepStrictEqual(yield* health(url, client("192.0.2.2")), [[200]])
      assert.deepStrictEqual(yield* health(url, client("127.0.0.1")), [[200]])
      idle[4]?.reset()
      yield* answers(url, ada, [[200]])
    }).pipe(Effect.scoped)
  )
})

layer(appWith({ SVC_THROTTLES: "off" }), live)("without throttles", (it) => {
  it.effect("accepts more connections of a client than the limit when throttles are off", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      yield* Effect.forEach(Array.from({ length: 4 * limit }), () => openRawConnection(url))
      assert.deepStrictEqual(yield* health(url), [[200]])
    }).pipe(Effect.scoped)
  )
})
