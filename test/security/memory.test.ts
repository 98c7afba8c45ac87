/** Memory that slow clients can hold: bodies that do not end, and requests without a response. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, layer } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, guest, request } from "#testing/players"
import { appWithSql } from "../support/devices.ts"
import {
  openRawConnection,
  openRawConnections,
  responsesIn
} from "../support/malformed/raw-connection.ts"
import { readMetric } from "../support/metrics.ts"
import { live } from "../support/security/security-harness.ts"

const mebibyte = 1024 * 1024

/** Memory of this process, which holds both ends, in MiB. */
const residentMiB = Effect.sync(() => process.memoryUsage.rss() / mebibyte)

/** Bytes of all live objects and texts, without those of buffers. */
const liveBytes = Effect.sync(() => {
  setFlagsFromString("--expose-gc")
  const gc: unknown = runInNewContext("gc")
  if (Predicate.isFunction(gc)) gc()
  return process.memoryUsage().heapUsed
})

/** A player whose save `large` has a mebibyte: the headers of its requests, and one that reads the save. */
const playerWithLargeSave = Effect.gen(function* () {
  const app = yield* TestApp
  yield* configure(app, { features: { saves: true } })
  const { accessToken } = yield* guest(app)
  const headers = { "x-svc-key": app.publishableKey, authorization: `Bearer ${accessToken}` }
  const url = `${app.url}/v1/saves/large`
  const data = "x".repeat(mebibyte - 2)
  const saved = yield* request(url, { method: "PUT", headers, body: { data } })
  assert.strictEqual(saved.status, 200)
  const read =
    `GET /v1/saves/large HTTP/1.1\r\nHost: a\r\nX-Svc-Key: ${app.publishableKey}\r\n` +
    `Authorization: Bearer ${accessToken}\r\n\r\n`
  return { headers, url, read }
})

/** Connections that ask for a save twelve times and read nothing. */
const openUnread = Effect.fnUntraced(function* (count: number, read: string) {
  const app = yield* TestApp
  return yield* Effect.forEach(Array.from({ length: count }), () =>
    Effect.gen(function* () {
      const connection = yield* openRawConnection(app.url)
      connection.stopReading()
      // The operating system holds the first responses of a connection, this process at most one.
      connection.send(read.repeat(12))
      return connection
    })
  )
})

/** The head of a sign-in whose body follows in chunks. */
const chunkedHead = (publishableKey: string): string =>
  `POST /v1/auth/guest HTTP/1.1\r\nHost: a\r\nX-Svc-Key: ${publishableKey}\r\n` +
  "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

layer(appWithSql(), live)("memory of slow clients", (it) => {
  it.effect(
    "keeps unfinished bodies in chunks of one byte small",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const clients = 1000
        const chunks = 1000
        const sent = chunkedHead(app.publishableKey) + "1\r\na\r\n".repeat(chunks)
        const before = yield* residentMiB
        const connections = yield* openRawConnections(app.url, clients, sent)
        // The service has read all of them when it answers a request that came later.
        for (const connection of connections) connection.send("1\r\na\r\n")
        yield* guest(app)
        const grown = (yield* residentMiB) - before
        // One Buffer for each byte would take 1 GB.
        assert.isBelow(grown, 200)
        connections[0]?.send("0\r\n\r\n")
        yield* app.eventually(
          Effect.sync(() => (connections[0]?.received.length ?? 0) > 0),
          "the first body ends"
        )
        // A slow machine reads the last byte after the time of the body.
        const [answer] = responsesIn(connections[0]?.received ?? Buffer.alloc(0))
        assert.include(["400 invalid_json", "408 invalid_request"], answer?.join(" "))
      }).pipe(Effect.scoped),
    { tags: "long" }
  )

  it.effect("refuses a body by its declared length before it arrives", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const connection = yield* openRawConnection(app.url)
      connection.send(
        `POST /v1/auth/guest HTTP/1.1\r\nHost: a\r\nX-Svc-Key: ${app.publishableKey}\r\n` +
          "Content-Type: application/json\r\nContent-Length: 1400000\r\n\r\n{"
      )
      yield* connection.ended
      assert.deepStrictEqual(responsesIn(connection.received), [[413, "payload_too_large"]])
    }).pipe(Effect.scoped)
  )

  it.effect("cuts the unfinished bodies of one client when all bodies are too many", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, { features: { saves: true } })
      const { accessToken } = yield* guest(app)
      const sent =
        `PUT /v1/saves/a HTTP/1.1\r\nHost: a\r\nX-Svc-Key: ${app.publishableKey}\r\n` +
        `Authorization: Bearer ${accessToken}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${mebibyte}\r\n\r\n{"data":"${"x".repeat(mebibyte - 100)}`
      const connections = yield* openRawConnections(app.url, 60, sent)
      yield* app.eventually(
        Effect.sync(() => connections.filter(({ received }) => received.length > 0).length >= 12),
        "bodies are cut"
      )
      const refused = connections.filter(({ received }) => received.length > 0)
      for (const { received } of refused) {
        assert.deepStrictEqual(responsesIn(received), [[503, "unavailable"]])
      }
      const saved = yield* request(`${app.url}/v1/saves/b`, {
        method: "PUT",
        headers: { "x-svc-key": app.publishableKey, authorization: `Bearer ${accessToken}` },
        body: { data: "x".repeat(mebibyte / 2) }
      })
      assert.strictEqual(at(saved.body, "version"), 1)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "cuts clients that do not read when unread responses are too many",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const { headers, read, url } = yield* playerWithLargeSave
        const connections = yield* openUnread(80, read)
        const cut = Effect.gen(function* () {
          const unread = yield* readMetric(app.url, "svc_http_unread_bytes")
          assert.isAtMost(unread, 48 * mebibyte)
          const open = yield* readMetric(app.url, "svc_connections")
          return open < connections.length ? { unread, open } : undefined
        })
        yield* app.eventually(cut, "connections are cut")
        const response = yield* request(url, { headers })
        assert.strictEqual(at(response.body, "size"), mebibyte)
        // The operating system would hold what it has of a closed connection for minutes.
        for (const connection of connections) connection.resumeReading()
        yield* app.eventually(
          Effect.sync(() => connections.some(({ errorCode }) => errorCode === "ECONNRESET")),
          "connections that are cut are reset"
        )
      }).pipe(Effect.scoped),
    { tags: "long" }
  )

  it.effect(
    "holds an unread response once: its bytes, but not its text",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const { read } = yield* playerWithLargeSave
        const before = yield* liveBytes
        yield* openUnread(40, read)
        const held = yield* app.eventually(
          Effect.gen(function* () {
            const unread = yield* readMetric(app.url, "svc_http_unread_bytes")
            return unread > 24 * mebibyte ? unread : undefined
          }),
          "responses wait for their clients"
        )
        const grown = (yield* liveBytes) - before
        assert.isBelow(grown, held / 2, "texts of responses are held beside their bytes")
      }).pipe(Effect.scoped),
    { tags: "long" }
  )

  it.effect("closes a connection that sends many requests without reading a response", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const send = Effect.fnUntraced(function* (count: number) {
        const connection = yield* openRawConnection(app.url)
        connection.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".repeat(count - 1))
        connection.send("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        yield* connection.ended
        return responsesIn(connection.received).length
      })
      assert.strictEqual(yield* send(20), 20)
      assert.isBelow(yield* send(200), 33)
    }).pipe(Effect.scoped)
  )
})
