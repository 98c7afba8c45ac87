/**
 * Clients that are silent, vanish, flood or violate the WebSocket protocol, over real connections that
 * they never close. The service closes each with its code in time, frees everything, and no other client
 * notices. The test controls the clock.
 */
import { deflateRawSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { socket as limits } from "#rpc/limits"
import { TestApp } from "#testing/app"
import { goOnline, guest, request } from "#testing/players"
import { pause } from "#testing/socket-client"
import { FaultProxy } from "../chaos/fault-proxy.ts"
import { closeCodeIn, frame, opcodes, text } from "../support/malformed/frames.ts"
import { crowd, endures, patienceMillis, serviceWith } from "../support/malformed/neighbours.ts"
import { answersIn, openWire, openWires, type Wire } from "../support/malformed/wire.ts"

const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
  "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
const realtime = upgrade("/v1/realtime")
const native = upgrade("/v1/rpc")

/** Lets time pass, in steps between which everybody has their say. */
const pass = (seconds: number) =>
  Effect.andThen(TestClock.adjust("1 second"), pause(20)).pipe(
    Effect.repeat({ times: seconds - 1 })
  )

const many = (count: number, bytes: Buffer) =>
  Buffer.concat(Array.from({ length: count }, () => bytes))

const { close, continuation, ping, pong } = opcodes
const open = { fin: false }
const large = "x".repeat(40_000)
const bomb = deflateRawSync(Buffer.alloc(10_000_000))

/** What is sent, and the code that it is closed with. */
const cases: Readonly<Record<string, readonly [bytes: Buffer, code: number]>> = {
  "a frame of a terabyte": [frame(opcodes.text, "x", { size: 2 ** 40 }), 1009],
  "a frame beyond numbers": [frame(opcodes.text, "x", { size: 2 ** 60 }), 1009],
  "a frame that is a byte too large": [
    frame(opcodes.text, "x".repeat(limits.frameMaxBytes + 1)),
    1009
  ],
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
  "a data frame nobody knows": [frame(3, "x"), 1002],
  "a control frame nobody knows": [frame(11, "x"), 1002],
  "a ping that is too large": [frame(ping, "x".repeat(126)), 1002],
  "a ping in fragments": [frame(ping, "x", open), 1002],
  "a continuation of nothing": [frame(continuation, "x"), 1002],
  "a message within a message": [
    Buffer.concat([frame(opcodes.text, "x", open), frame(opcodes.text, "x")]),
    1002
  ],
  "half a close code": [frame(close, "x"), 1002],
  "a close code that nobody may send": [frame(close, Buffer.of(0x03, 0xed)), 1002],
  "text that is no UTF-8": [frame(opcodes.text, Buffer.of(0xc3, 0x28)), 1007],
  binary: [frame(opcodes.binary, "x"), 1003],
  "a close, and nothing after it": [frame(close, Buffer.of(0x03, 0xe8)), 1000],
  "a flood of pongs": [many(5000, frame(pong, "x")), 4029]
}

/** Waits for something in what was heard. */
const until = (wire: Wire, heard: (heard: Buffer) => boolean, what: string) =>
  Effect.flatMap(TestApp, (app) =>
    app.eventually(
      Effect.sync(() => heard(wire.heard)),
      what
    )
  )

const shaken = (wire: Wire) =>
  until(wire, (heard) => answersIn(heard)[0]?.[0] === 101, "the hands are shaken")

const closed = (wire: Wire, code: number, name: string) =>
  until(wire, (heard) => closeCodeIn(heard) !== undefined, `${name} is closed`).pipe(
    Effect.andThen(Effect.sync(() => assert.strictEqual(closeCodeIn(wire.heard), code, name)))
  )

/** A raw socket that is let in. */
const admitted = Effect.gen(function* () {
  const app = yield* TestApp
  const { accessToken } = yield* guest(app)
  const wire = yield* openWire(app.url)
  wire.say(realtime)
  wire.say(text({ t: "auth", key: app.publishableKey, token: accessToken }))
  yield* until(wire, (heard) => heard.includes('"t":"welcome"'), "the socket is let in")
  return wire
})

layer(serviceWith())("misbehaving sockets", (it) => {
  it.effect(
    "are closed with the code of their violation, before admission and after",
    () =>
      endures(
        Effect.forEach(
          Object.entries(cases),
          ([name, [bytes, code]]) =>
            Effect.gen(function* () {
              const { url } = yield* TestApp
              const stranger = yield* openWire(url)
              stranger.say(realtime)
              stranger.say(bytes)
              const player = yield* admitted
              player.say(bytes)
              yield* closed(stranger, code, `${name}, before`)
              yield* closed(player, code, `${name}, after`)
              assert.notInclude(stranger.heard.toString("latin1"), "permessage-deflate")
            }),
          { concurrency: 5 }
        ).pipe(Effect.andThen(pass(4)))
      ),
    patienceMillis
  )

  it.effect(
    "that send nothing are closed in time, however many",
    () =>
      endures(
        Effect.gen(function* () {
          const { url } = yield* TestApp
          const wires = yield* openWires(url, yield* crowd, realtime)
          yield* Effect.forEach(wires, shaken)
          yield* pass(6)
          yield* Effect.forEach(wires, (wire) => closed(wire, 4001, "silence"))
          yield* pass(3)
        })
      ),
    patienceMillis
  )

  it.effect(
    "that send frames byte by byte, or too much before admission, are closed",
    () =>
      endures(
        Effect.gen(function* () {
          const app = yield* TestApp
          const { publishableKey, url } = app
          const { accessToken } = yield* guest(app)
          const slow = yield* openWire(url)
          slow.say(realtime)
          yield* shaken(slow)
          yield* slow.trickle(frame(opcodes.text, "x".repeat(2 * limits.bufferedChunksMax)), 1)
          yield* closed(slow, 1008, "a byte at a time")
          const eager = yield* openWire(url)
          eager.say(realtime)
          yield* eager.trickle(many(5000, frame(ping)), 100)
          yield* closed(eager, 4029, "a flood of pings")
          const hasty = yield* openWire(url)
          hasty.say(realtime)
          hasty.say(text({ t: "auth", key: publishableKey, token: accessToken }))
          hasty.say(many(limits.earlyFramesMax + 1, text({ t: "ping" })))
          yield* closed(hasty, 4029, "haste")
          const deaf = yield* admitted
          deaf.deafen()
          deaf.say(many(50_000, frame(ping, "x".repeat(125))))
          yield* pass(4)
        })
      ),
    patienceMillis
  )

  it.effect(
    "whose clients vanished are closed after the idle timeout",
    () =>
      endures(
        Effect.gen(function* () {
          const app = yield* TestApp
          const proxy = yield* Effect.acquireRelease(
            Effect.promise(() => FaultProxy.open(Number(new URL(app.url).port))),
            (way) => Effect.sync(() => way.close())
          )
          const url = `http://127.0.0.1:${proxy.port}`
          const players = yield* Effect.all(
            Array.from({ length: 20 }, () => guest(app)),
            { concurrency: 5 }
          )
          yield* Effect.forEach(players, (player) => goOnline({ ...app, url }, player))
          proxy.block()
          yield* pass(limits.idleSeconds + 4)
        })
      ),
    patienceMillis
  )

  it.effect(
    "of native RPC are closed, too",
    () =>
      endures(
        Effect.gen(function* () {
          const app = yield* TestApp
          const { url } = app
          const silent = yield* openWires(url, Math.ceil((yield* crowd) / 10), native)
          yield* Effect.forEach(silent, shaken)
          for (const [bytes] of Object.values(cases)) {
            const wire = yield* openWire(url)
            wire.say(native)
            yield* shaken(wire)
            wire.say(bytes)
          }
          const malformed = native.replace("Host: a", "Host: a\r\nHost: b")
          for (const wire of yield* openWires(url, 5, malformed)) {
            yield* until(wire, (heard) => answersIn(heard).length > 0, "it is answered")
            assert.deepStrictEqual(answersIn(wire.heard), [[400, "invalid_request"]])
          }
          const { accessToken } = yield* guest(app)
          const player = yield* openWire(url)
          const headers = [
            ["x-svc-key", app.publishableKey],
            ["authorization", `Bearer ${accessToken}`]
          ]
          player.say(native)
          player.say(text({ _tag: "Request", id: "0", tag: "events", payload: null, headers }))
          yield* until(player, (heard) => heard.includes("welcome"), "the events are open")
          yield* pass(limits.admitSeconds + 2)
          player.say(text({ _tag: "Ping" }))
          yield* until(player, (heard) => heard.includes("Pong"), "the player is still there")
          yield* pass(limits.idleSeconds + 2)
        })
      ),
    patienceMillis
  )
})

const most = 60

layer(serviceWith({ SVC_MAX_CONNECTIONS: `${most}` }))("too many connections", (it) => {
  it.effect(
    "are refused, and open connections continue",
    () =>
      endures(
        Effect.gen(function* () {
          const { url } = yield* TestApp
          const wires = yield* openWires(url, most - 10, realtime)
          yield* Effect.forEach(wires, (wire) =>
            until(wire, (heard) => answersIn(heard).length > 0, "it is answered")
          )
          const refused = wires
            .flatMap(({ heard }) => answersIn(heard))
            .filter(([status]) => status !== 101)
          assert.isNotEmpty(refused)
          for (const answer of refused) assert.deepStrictEqual(answer, [503, "unavailable"])
          for (let i = 0; i < 20; i++) {
            const hasty = yield* openWire(url)
            hasty.say(realtime)
            hasty.reset()
          }
          const beyond = yield* openWires(url, 2 * most, "")
          yield* Effect.forEach(beyond, (wire) => wire.ended)
          const unanswered = beyond.filter(({ heard }) => heard.length === 0)
          assert.isAtLeast(unanswered.length, most)
          const { body } = yield* request(`${url}/metrics`)
          const [, dropped] = /^svc_connections_dropped_total (\d+)$/m.exec(String(body)) ?? []
          assert.isAtLeast(Number(dropped), most)
          yield* pass(8)
        })
      ),
    patienceMillis
  )
})
