/**
 * Clients that are silent, vanish, flood or violate the WebSocket protocol, over real connections that
 * they never close. The service closes each with its code in time, frees everything, and no other client
 * notices. The test controls the clock.
 */
import { once } from "node:events"
import { get } from "node:http"
import { text as readText } from "node:stream/consumers"
import { deflateRawSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { frameMaxBytes } from "#rpc/client-limits"
import { socketLimits } from "#server/platform/socket-limits"
import { TestApp } from "#testing/app"
import { goOnline, guest } from "#testing/players"
import { FaultProxy } from "../chaos/fault-proxy.ts"
import { closeCodeIn, frame, opcodes, text } from "../support/malformed/frames.ts"
import {
  clientCount,
  assertSurvives,
  testTimeoutMillis,
  serviceWith
} from "../support/malformed/malformed-harness.ts"
import {
  responsesIn,
  openRawConnection,
  openRawConnections,
  type RawConnection
} from "../support/malformed/raw-connection.ts"
import { passTime } from "../support/passing-time.ts"

const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
  "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
const realtime = upgrade("/v1/realtime")
const native = upgrade("/v1/rpc")

/** Lets seconds pass one by one, so that sockets can react. */
const pass = (seconds: number) => passTime("1 second", seconds)

const many = (count: number, bytes: Buffer) =>
  Buffer.concat(Array.from({ length: count }, () => bytes))

const { close, continuation, ping, pong } = opcodes
const open = { fin: false }
const large = "x".repeat(40_000)
const bomb = deflateRawSync(Buffer.alloc(10_000_000))

/** The bytes a client sends, and the code of the close frame it gets. */
const cases: Readonly<Record<string, readonly [bytes: Buffer, code: number]>> = {
  "a frame of a terabyte": [frame(opcodes.text, "x", { size: 2 ** 40 }), 1009],
  "a frame whose length is no safe integer": [frame(opcodes.text, "x", { size: 2 ** 60 }), 1009],
  "a frame that is a byte too large": [frame(opcodes.text, "x".repeat(frameMaxBytes + 1)), 1009],
  "fragments that are too large together": [
    Buffer.concat([frame(opcodes.text, large, open), frame(continuation, large, open)]),
    1009
  ],
  "fragments without an end": [
    Buffer.concat([frame(opcodes.text, "", open), many(100, frame(continuation, "", open))]),
    1008
  ],
  "a compressed bomb": [frame(opcodes.text, bomb, { reserved: 4 }), 1002],
  "the second reserved bit": [frame(opcodes.text, "{}", { reserved: 2 }), 1002],
  "the third reserved bit": [frame(opcodes.text, "{}", { reserved: 1 }), 1002],
  "a frame without a mask": [frame(opcodes.text, "{}", { masked: false }), 1002],
  "a data frame of a reserved opcode": [frame(3, "x"), 1002],
  "a control frame of a reserved opcode": [frame(11, "x"), 1002],
  "a ping that is too large": [frame(ping, "x".repeat(126)), 1002],
  "a ping in fragments": [frame(ping, "x", open), 1002],
  "a continuation without a first fragment": [frame(continuation, "x"), 1002],
  "a new message between fragments": [
    Buffer.concat([frame(opcodes.text, "x", open), frame(opcodes.text, "x")]),
    1002
  ],
  "half a close code": [frame(close, "x"), 1002],
  "a reserved close code": [frame(close, Buffer.of(0x03, 0xed)), 1002],
  "text that is not valid UTF-8": [frame(opcodes.text, Buffer.of(0xc3, 0x28)), 1007],
  binary: [frame(opcodes.binary, "x"), 1003],
  "a close frame without an end of the connection": [frame(close, Buffer.of(0x03, 0xe8)), 1000],
  "a flood of pongs": [many(5000, frame(pong, "x")), 4029]
}

/** Waits until the received bytes match. */
const until = (connection: RawConnection, matches: (received: Buffer) => boolean, what: string) =>
  Effect.flatMap(TestApp, (app) =>
    app.eventually(
      Effect.sync(() => matches(connection.received)),
      what
    )
  )

const upgraded = (connection: RawConnection) =>
  until(connection, (received) => responsesIn(received)[0]?.[0] === 101, "the upgrade is accepted")

const closed = (connection: RawConnection, code: number, name: string) =>
  until(connection, (received) => closeCodeIn(received) !== undefined, `${name} is closed`).pipe(
    Effect.andThen(
      Effect.sync(() => assert.strictEqual(closeCodeIn(connection.received), code, name))
    )
  )

/** Opens a socket that the service has admitted. */
const admitted = Effect.gen(function* () {
  const app = yield* TestApp
  const { accessToken } = yield* guest(app)
  const connection = yield* openRawConnection(app.url)
  connection.send(realtime)
  connection.send(text({ t: "auth", key: app.publishableKey, token: accessToken }))
  yield* until(
    connection,
    (received) => received.includes('"t":"welcome"'),
    "the socket is admitted"
  )
  return connection
})

layer(serviceWith())("misbehaving sockets", (it) => {
  it.effect(
    "closes misbehaving sockets with the code of their violation, admitted or not",
    () =>
      assertSurvives(
        Effect.forEach(
          Object.entries(cases),
          ([name, [bytes, code]]) =>
            Effect.gen(function* () {
              const { url } = yield* TestApp
              const unadmitted = yield* openRawConnection(url)
              unadmitted.send(realtime)
              unadmitted.send(bytes)
              const player = yield* admitted
              player.send(bytes)
              yield* closed(unadmitted, code, `${name}, before`)
              yield* closed(player, code, `${name}, after`)
              assert.notInclude(unadmitted.received.toString("latin1"), "permessage-deflate")
            }),
          { concurrency: 5 }
        ).pipe(Effect.andThen(pass(4)))
      ),
    testTimeoutMillis
  )

  it.effect(
    "closes sockets that send nothing in time, however many",
    () =>
      assertSurvives(
        Effect.gen(function* () {
          const { url } = yield* TestApp
          const connections = yield* openRawConnections(url, yield* clientCount, realtime)
          yield* Effect.forEach(connections, upgraded)
          yield* pass(6)
          yield* Effect.forEach(connections, (connection) => closed(connection, 4001, "silence"))
          yield* pass(3)
        })
      ),
    testTimeoutMillis
  )

  it.effect(
    "closes sockets that send frames byte by byte, or too much before admission",
    () =>
      assertSurvives(
        Effect.gen(function* () {
          const app = yield* TestApp
          const { publishableKey, url } = app
          const { accessToken } = yield* guest(app)
          const slow = yield* openRawConnection(url)
          slow.send(realtime)
          yield* upgraded(slow)
          yield* slow.trickle(
            frame(opcodes.text, "x".repeat(2 * socketLimits.bufferedChunksMax)),
            1
          )
          yield* closed(slow, 1008, "a byte at a time")
          const flooding = yield* openRawConnection(url)
          flooding.send(realtime)
          yield* flooding.trickle(many(5000, frame(ping)), 100)
          yield* closed(flooding, 4029, "a flood of pings")
          const early = yield* openRawConnection(url)
          early.send(realtime)
          early.send(text({ t: "auth", key: publishableKey, token: accessToken }))
          early.send(many(socketLimits.earlyFramesMax + 1, text({ t: "ping" })))
          yield* closed(early, 4029, "frames before admission")
          const notReading = yield* admitted
          notReading.stopReading()
          notReading.send(many(50_000, frame(ping, "x".repeat(125))))
          yield* pass(4)
        })
      ),
    { timeout: testTimeoutMillis, tags: "long" }
  )

  it.effect(
    "closes sockets whose clients vanished after the idle timeout",
    () =>
      assertSurvives(
        Effect.gen(function* () {
          const app = yield* TestApp
          const proxy = yield* Effect.acquireRelease(
            Effect.promise(() => FaultProxy.open(Number(new URL(app.url).port))),
            (opened) => Effect.sync(() => opened.close())
          )
          const url = `http://127.0.0.1:${proxy.port}`
          const players = yield* Effect.all(
            Array.from({ length: 20 }, () => guest(app)),
            { concurrency: 5 }
          )
          yield* Effect.forEach(players, (player) => goOnline({ ...app, url }, player))
          proxy.block()
          yield* pass(socketLimits.idleSeconds + 4)
        })
      ),
    { timeout: testTimeoutMillis, tags: "long" }
  )

  it.effect(
    "closes misbehaving sockets of native RPC",
    () =>
      assertSurvives(
        Effect.gen(function* () {
          const app = yield* TestApp
          const { url } = app
          const silent = yield* openRawConnections(
            url,
            Math.ceil((yield* clientCount) / 10),
            native
          )
          yield* Effect.forEach(silent, upgraded)
          for (const [bytes] of Object.values(cases)) {
            const connection = yield* openRawConnection(url)
            connection.send(native)
            yield* upgraded(connection)
            connection.send(bytes)
          }
          const malformed = native.replace("Host: a", "Host: a\r\nHost: b")
          for (const connection of yield* openRawConnections(url, 5, malformed)) {
            yield* until(
              connection,
              (received) => responsesIn(received).length > 0,
              "a response arrives"
            )
            assert.deepStrictEqual(responsesIn(connection.received), [[400, "invalid_request"]])
          }
          const { accessToken } = yield* guest(app)
          const player = yield* openRawConnection(url)
          const headers = [
            ["x-svc-key", app.publishableKey],
            ["authorization", `Bearer ${accessToken}`]
          ]
          player.send(native)
          player.send(text({ _tag: "Request", id: "0", tag: "events", payload: null, headers }))
          yield* until(
            player,
            (received) => received.includes("welcome"),
            "the event stream is open"
          )
          yield* pass(socketLimits.admitSeconds + 2)
          player.send(text({ _tag: "Ping" }))
          yield* until(player, (received) => received.includes("Pong"), "the player is still there")
          yield* pass(socketLimits.idleSeconds + 2)
        })
      ),
    { timeout: testTimeoutMillis, tags: "long" }
  )
})

const maxConnections = 60

/** Reads on a connection of its own. `fetch` could take the one that the healthy client keeps. */
const readAlone = (url: string) =>
  Effect.tryPromise(async () => {
    const [response] = await once(get(url, { agent: false }), "response")
    return readText(response)
  })

layer(serviceWith({ SVC_MAX_CONNECTIONS: `${maxConnections}` }))("too many connections", (it) => {
  it.effect(
    "refuses connections beyond the limit, and serves the open ones",
    () =>
      assertSurvives(
        Effect.gen(function* () {
          const { url } = yield* TestApp
          const connections = yield* openRawConnections(url, maxConnections - 10, realtime)
          yield* Effect.forEach(connections, (connection) =>
            until(connection, (received) => responsesIn(received).length > 0, "a response arrives")
          )
          const refused = connections
            .flatMap(({ received }) => responsesIn(received))
            .filter(([status]) => status !== 101)
          assert.isNotEmpty(refused)
          for (const response of refused) assert.deepStrictEqual(response, [503, "unavailable"])
          for (let i = 0; i < 20; i++) {
            const early = yield* openRawConnection(url)
            early.send(realtime)
            early.reset()
          }
          const excess = yield* openRawConnections(url, 2 * maxConnections, "")
          yield* Effect.forEach(excess, (connection) => connection.ended)
          const withoutResponse = excess.filter(({ received }) => received.length === 0)
          assert.isAtLeast(withoutResponse.length, maxConnections)
          // The process counts a connection for a moment after its end, and drops one more then.
          const metrics = yield* Effect.retry(readAlone(`${url}/metrics`), { times: 10_000 })
          const [, dropped] = /^svc_connections_dropped_total (\d+)$/m.exec(metrics) ?? []
          assert.isAtLeast(Number(dropped), maxConnections)
          yield* pass(8)
        })
      ),
    { timeout: testTimeoutMillis, tags: "long" }
  )
})
