/**
 * Clients that send slow, broken or ambiguous HTTP over connections that they never close. Each gets an
 * error in the usual format, the service disconnects it, and no other client notices.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestConsole } from "effect/testing"
import { TestApp } from "#testing/app"
import {
  clientCount,
  assertSurvives,
  testTimeoutMillis,
  serviceWith
} from "../support/malformed/malformed-harness.ts"
import {
  responsesIn,
  type ResponseSummary,
  openRawConnection,
  openRawConnections
} from "../support/malformed/raw-connection.ts"

const AppLive = Layer.provideMerge(serviceWith(), TestConsole.layer)

const host = "Host: a\r\n"
const get = (path: string, headers = "") => `GET ${path} HTTP/1.1\r\n${host}${headers}\r\n`
const health = get("/healthz")
const lines = (count: number) =>
  Array.from({ length: count }, (_, n) => `X-Pad-${n}: ${n}\r\n`).join("")

const key = "dGhlIHNhbXBsZSBub25jZQ=="
const upgrade = (version = "13", nonce = key, protocol = "websocket") =>
  `Connection: Upgrade\r\nUpgrade: ${protocol}\r\nSec-WebSocket-Version: ${version}\r\n` +
  `Sec-WebSocket-Key: ${nonce}\r\n`

const post = (headers: string, body = "", path = "/v1/auth/guest") =>
  `POST ${path} HTTP/1.1\r\n${host}X-Svc-Key: <key>\r\nContent-Type: application/json\r\n` +
  `${headers}\r\n${body}`
const chunked = "Transfer-Encoding: chunked\r\n"

const ok: ResponseSummary = [200]
const bad: ResponseSummary = [400, "invalid_request"]
const tooLarge: ResponseSummary = [431, "payload_too_large"]
const notFound: ResponseSummary = [404, "not_found"]
const wrongMethod: ResponseSummary = [405, "method_not_allowed"]
const upgradeRequired: ResponseSummary = [426, "upgrade_required"]

type Case = readonly [bytes: string, ...responses: ReadonlyArray<ResponseSummary>]

/** The bytes a client sends, and the responses it gets. */
const cases: Readonly<Record<string, Case>> = {
  "TLS on the plain port": ["\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003", bad],
  "HTTP/2 without an upgrade": ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", bad],
  "HTTP/0.9": ["GET /healthz\r\n\r\n", ok],
  "HTTP/1.0 without a host": ["GET /healthz HTTP/1.0\r\n\r\n", ok],
  "HTTP/1.1 without a host": ["GET /healthz HTTP/1.1\r\n\r\n", bad],
  "two hosts": [get("/healthz", "Host: b\r\n"), bad],
  "bare line feeds": ["GET /healthz HTTP/1.1\nHost: a\n\n", bad],
  "a folded header": [get("/healthz", "X-Pad: a\r\n b\r\n"), bad],
  "a space before the colon": [get("/healthz", "X-Pad : a\r\n"), bad],
  "a NUL in a header": [get("/healthz", "X-Pad: a\u0000b\r\n"), bad],
  "an unknown method": [`BREW /healthz HTTP/1.1\r\n${host}\r\n`, bad],
  CONNECT: [`CONNECT a:443 HTTP/1.1\r\n${host}\r\n`, wrongMethod],
  TRACE: [`TRACE /healthz HTTP/1.1\r\n${host}\r\n`, wrongMethod],
  "an absolute target": [get("http://a/healthz"), ok],
  "a target of another scheme": [get("ftp://a/healthz"), notFound],
  "a target without a slash": [get("healthz"), bad],
  "a target of two slashes": [get("//a/healthz"), notFound],
  "an unknown expectation": [get("/healthz", "Expect: tea\r\n"), ok],
  "Expect: 100-continue for an unknown path": [
    post("Expect: 100-continue\r\nContent-Length: 2\r\n", "", "/nowhere"),
    notFound
  ],
  "one huge header": [get("/healthz", `X-Pad: ${"x".repeat(20_000)}\r\n`), tooLarge],
  "a huge target": [get(`/${"x".repeat(20_000)}`), tooLarge],
  "very many headers": [get("/healthz", lines(1000)), tooLarge],
  "huge trailers": [
    post(chunked, `2\r\n{}\r\n0\r\nX-Pad: ${"x".repeat(20_000)}\r\n\r\n`),
    tooLarge
  ],
  "huge chunk extensions": [
    post(chunked, `2;${"x".repeat(20_000)}\r\n{}\r\n0\r\n\r\n`),
    [413, "payload_too_large"]
  ],
  "a length and chunks": [post(`Content-Length: 5\r\n${chunked}`, "0\r\n\r\n"), bad],
  "two lengths": [post("Content-Length: 2\r\nContent-Length: 3\r\n", "{} "), bad],
  "a negative length": [post("Content-Length: -2\r\n", "{}"), bad],
  "a length that is no safe integer": [post("Content-Length: 99999999999999999999\r\n", "{}"), bad],
  "a coding before the chunks": [post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), bad],
  "a coding after the chunks": [post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), bad],
  "chunks without a valid size": [post(chunked, "zz\r\n{}\r\n"), bad],
  "a chunk size that is no safe integer": [post(chunked, "fffffffffffffffff\r\n"), bad],
  "chunks that are longer than their size": [post(chunked, "2\r\n{}{}\r\n0\r\n\r\n"), bad],
  "a body that is longer than its length": [
    post("Content-Length: 2\r\n", "{}{}{}\r\n\r\n"),
    ok,
    bad
  ],
  "a compressed body": [
    post("Content-Encoding: gzip\r\nContent-Length: 4\r\n", "\u001f\u008b\b\u0000"),
    [415, "unsupported_media_type"]
  ],
  "garbage after pipelined requests": [
    `${health}${get("/v1/config")}${get("/nowhere")}\u0000\u0001garbage\r\n\r\n`,
    ok,
    [401, "invalid_key"],
    notFound,
    bad
  ],
  "a WebSocket of another version": [get("/v1/realtime", upgrade("7")), upgradeRequired],
  "a WebSocket with a bad key": [get("/v1/realtime", upgrade("13", "x")), upgradeRequired],
  "an upgrade to another protocol": [
    get("/v1/realtime", upgrade("13", key, "h2c")),
    upgradeRequired
  ],
  "a WebSocket with bad protocols": [
    get("/v1/realtime", `${upgrade()}Sec-WebSocket-Protocol: ,\r\n`),
    upgradeRequired
  ],
  "a WebSocket at an unknown path": [get("/nowhere", upgrade()), notFound],
  "a WebSocket by POST": [post(upgrade(), "", "/v1/realtime"), wrongMethod],
  "a native WebSocket of another version": [get("/v1/rpc", upgrade("7")), upgradeRequired],
  "a native WebSocket with a protocol twice": [
    get("/v1/rpc", `${upgrade()}Sec-WebSocket-Protocol: a, a\r\n`),
    upgradeRequired
  ],
  "HTTP/2 by upgrade": [get("/healthz", upgrade("13", key, "h2c")), ok],
  "HTTP/2 by upgrade, with a body": [
    post(`${upgrade("13", key, "h2c")}${chunked}`, "2\r\n{}\r\n0\r\n\r\n"),
    ok
  ]
}

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("broken requests", (it) => {
  it.effect(
    "answers broken requests in the usual error format, and disconnects",
    () =>
      Effect.gen(function* () {
        const { publishableKey, url } = yield* TestApp
        const assertResponses = ([name, [bytes, ...responses]]: readonly [string, Case]) =>
          Effect.gen(function* () {
            const connection = yield* openRawConnection(url)
            connection.send(bytes.replace("<key>", publishableKey))
            yield* connection.ended
            assert.deepStrictEqual(responsesIn(connection.received), responses, name)
          })
        yield* assertSurvives(
          Effect.forEach(Object.entries(cases), assertResponses, { concurrency: 20 })
        )
      }),
    testTimeoutMillis
  )

  it.effect(
    "answers 408 to requests that are too slow or never end, and disconnects",
    () =>
      Effect.gen(function* () {
        const { publishableKey, url } = yield* TestApp
        const perCase = Math.ceil((yield* clientCount) / 10)
        const late: ResponseSummary = [408, "invalid_request"]
        const body = post("Content-Length: 10000\r\n", "{").replace("<key>", publishableKey)
        const slowClients: Readonly<
          Record<
            string,
            readonly [sent: string, dripped: string, responses: ReadonlyArray<ResponseSummary>]
          >
        > = {
          "no bytes": ["", "", [late]],
          "half a header": ["GET /healthz HTTP/1.1\r\nHo", "", [late]],
          "headers a byte at a time": ["", `GET /healthz HTTP/1.1\r\nX-Pad: x`, [late]],
          "headers that never end": ["GET /healthz HTTP/1.1\r\nX-Pad: ", "x", [late]],
          "half a body": [body, "", [late]],
          "a body a byte at a time": [body, "x", [late]],
          "a body in an upgrade": [
            body.replace("\r\n", `\r\n${upgrade("13", key, "h2c")}`),
            "x",
            [late]
          ],
          "no second request": [health, "", [ok]],
          "half a second request": [`${health}GET /he`, "", [ok, late]]
        }
        yield* assertSurvives(
          Effect.forEach(
            Object.entries(slowClients),
            ([name, [sent, dripped, responses]]) =>
              Effect.gen(function* () {
                const connections = yield* openRawConnections(url, perCase, sent)
                for (const connection of dripped === "" ? [] : connections) {
                  yield* Effect.forkScoped(connection.drip(dripped, 200))
                }
                for (const connection of connections) {
                  yield* connection.ended
                  assert.deepStrictEqual(responsesIn(connection.received), responses, name)
                }
              }),
            { concurrency: "unbounded" }
          )
        )
      }),
    { timeout: testTimeoutMillis, tags: "long" }
  )

  it.effect(
    "disconnects clients that do not read their responses",
    () =>
      Effect.gen(function* () {
        const { url } = yield* TestApp
        const perCase = Math.ceil((yield* clientCount) / 20)
        yield* assertSurvives(
          Effect.gen(function* () {
            const connections = yield* openRawConnections(url, perCase, get("/docs").repeat(20))
            for (const connection of connections) connection.stopReading()
          })
        )
      }),
    { timeout: testTimeoutMillis, tags: "long" }
  )
})
