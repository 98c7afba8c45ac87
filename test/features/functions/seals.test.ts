/** What a process of functions believes: calls that carry the service's seal, each once, and nothing else. */
import { request } from "node:http"
import { text as readText } from "node:stream/consumers"
import { assert, describe, it, layer } from "@effect/vitest"
import { Clock, DateTime, Effect, Layer } from "effect"
import { FunctionHosts } from "#server/features/functions/host/local"
import { UsedNumbers } from "#server/features/functions/host/used-numbers"
import { FunctionsWorld, program, withFunctions } from "../../support/functions.ts"
import { MovableClock } from "../../support/movable-clock.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const code = `export default { fetch: (request, env) => Response.json({
  url: request.url,
  player: request.headers.get("svc-player"),
  address: request.headers.get("cf-connecting-ip"),
  names: [...request.headers.keys()].filter((name) => name.startsWith("x-svc-")),
  env: Object.keys(env)
}) }`

const send = (socketPath: string, method: string, headers: Record<string, string>, body = "") =>
  Effect.callback<{ readonly status: number; readonly text: string }>((resume) => {
    const sent = request({ socketPath, method, path: "/", headers }, (answer) => {
      resume(
        Effect.promise(async () => ({
          status: answer.statusCode ?? 0,
          text: await readText(answer)
        }))
      )
    })
    sent.on("error", (error) => resume(Effect.die(error)))
    sent.end(body)
  })

/** A running function, past the service. */
const setUp = Effect.fnUntraced(function* (modules: string, bindings: ReadonlyArray<never> = []) {
  const { live: run, url } = yield* FunctionsWorld
  const { local } = yield* FunctionHosts
  if (typeof local === "string") return yield* Effect.die(new Error(local))
  const id = run(program(modules, { bindings }))
  const call = Effect.promise(async () => (await fetch(`${url}/${id}/`)).text())
  yield* call
  const host = local.hosts.of(id)
  const { process } = host.supervisor
  if (process === undefined) return yield* Effect.die(new Error("it does not run"))
  const seal = () =>
    host.fetchHeaders(
      process,
      { method: "GET", framing: "" },
      { url: "http://game.example/ä€", clientAddress: "192.0.2.1", playerId: "pl_1" }
    )
  return { call, host, process, seal }
})

layer(withFunctions(), live)("seals of calls", (it) => {
  it.effect("takes a sealed call once, with the facts of its seal alone", () =>
    Effect.gen(function* () {
      const { process, seal } = yield* setUp(code)
      const headers = { ...seal(), "svc-player": "pl_2", "cf-connecting-ip": "6.6.6.6" }
      const first = yield* send(process.sockets.main, "GET", headers)
      assert.deepStrictEqual(JSON.parse(first.text), {
        url: "http://game.example/%C3%A4%E2%82%AC",
        player: "pl_1",
        address: "192.0.2.1",
        names: [],
        env: ["GREETING", "svc"]
      })
      assert.strictEqual((yield* send(process.sockets.main, "GET", headers)).status, 403)
    })
  )

  it.effect("refuses calls without a seal, and with another method, length, kind or player", () =>
    Effect.gen(function* () {
      const { process, seal } = yield* setUp(code)
      const { admin, entry, main } = process.sockets
      const facts = "x-svc-call"
      const changed = (from: string, to: string) => {
        const headers = seal()
        return { ...headers, [facts]: String(headers[facts]).replace(from, to) }
      }
      const forged: ReadonlyArray<readonly [string, string, Record<string, string>, string?]> = [
        [main, "GET", {}],
        [main, "GET", { "x-svc-kind": "fetch", "x-svc-url": "http://a/", "svc-player": "pl_2" }],
        [main, "GET", { [facts]: (seal()[facts] ?? "").slice(64) }],
        [main, "GET", { [facts]: `${"0".repeat(64)}${(seal()[facts] ?? "").slice(64)}` }],
        [main, "GET", changed("pl_1", "pl_2")],
        [main, "GET", changed("fetch", "scheduled")],
        [main, "GET", changed("192.0.2.1", "6.6.6.6")],
        [main, "POST", { ...seal(), "content-length": "0" }],
        [main, "GET", { ...seal(), "content-length": "2" }, "hi"],
        [main, "GET", { ...seal(), "transfer-encoding": "chunked" }, "hi"],
        [admin, "GET", seal()],
        [admin, "POST", {}, `{"operation":"warm"}`],
        [entry, "POST", { "mf-route-override": "admin" }, `{"operation":"warm"}`],
        [entry, "GET", { "mf-route-override": "main", "x-svc-kind": "exports" }]
      ]
      for (const [socket, method, headers, body] of forged) {
        const { status, text } = yield* send(socket, method, headers, body)
        assert.strictEqual(status, 403, `${method} ${JSON.stringify(headers)} ${text}`)
      }
    })
  )

  it.effect("refuses a recorded call of the process before", () =>
    Effect.gen(function* () {
      const { call, host, process, seal } = yield* setUp(code)
      const recorded = seal()
      yield* Effect.promise(() => host.supervisor.exclusively(0, async () => undefined))
      yield* call
      const { process: next } = host.supervisor
      assert.notStrictEqual(next?.pid, process.pid)
      const answer = yield* send(next?.sockets.main ?? "", "GET", recorded)
      assert.strictEqual(answer.status, 403)
    })
  )

  it.effect("refuses calls of bindings that carry no seal", () =>
    Effect.gen(function* () {
      const world = yield* FunctionsWorld
      const { process } = yield* setUp(code)
      const socket = process.sockets.main.replace(/[^/]+$/, "host")
      const calls = world.calls.length
      for (const path of ["/api/players/pl_1", "/queues/JOBS"]) {
        const status = yield* Effect.callback<number>((resume) => {
          const sent = request({ socketPath: socket, method: "POST", path }, (answer) => {
            answer.resume()
            resume(Effect.succeed(answer.statusCode ?? 0))
          })
          sent.on("error", (error) => resume(Effect.die(error)))
          sent.end("[]")
        })
        assert.strictEqual(status, 403, path)
      }
      assert.strictEqual(world.calls.length, calls)
    })
  )

  it.effect("keeps its key from code that patches the runtime and reads all that it can", () =>
    Effect.gen(function* () {
      const { call } = yield* setUp(thief)
      yield* call
      const { found, held, macs, promises, resolved, tried } = JSON.parse(yield* call)
      assert.deepStrictEqual(found, [])
      assert.strictEqual(held, 0)
      // The patches do see what passes through the player's part of the runtime.
      assert.isAbove(macs, 0)
      assert.isAbove(promises, 0)
      assert.isAbove(resolved, 0)
      assert.isAbove(tried, 0)
    })
  )
})

const real = Clock.Clock.defaultValue()

/** The real time, or another so many milliseconds away. */
const realTime = (away: number): string =>
  DateTime.formatIso(DateTime.makeUnsafe(real.currentTimeMillisUnsafe() + away))

layer(withFunctions().pipe(Layer.provideMerge(MovableClock.layerAt(realTime(0)))), live)(
  "ages of calls",
  (it) => {
    it.effect(
      "refuses a call that was sealed more than a minute ago, and takes a younger one",
      () =>
        Effect.gen(function* () {
          const clock = yield* MovableClock
          // The process has the real time, and the service the one that the test sets.
          const setAge = (age: number) => clock.setTime(realTime(-age))
          yield* setAge(0)
          const { process, seal } = yield* setUp(code)
          for (const [age, status] of [
            [50_000, 200],
            [61_000, 403],
            [0, 200]
          ] as const) {
            yield* setAge(age)
            const answer = yield* send(process.sockets.main, "GET", seal())
            assert.strictEqual(answer.status, status, `${age} ms`)
          }
        }),
      { tags: "long" }
    )
  }
)

describe("numbers of calls", () => {
  it("takes a number once, in any order within the window, and never behind it", () => {
    const numbers = new UsedNumbers()
    const window = 65_536
    const order = [1, 3, 2, 3, 1, window + 2, 3, 4, 4, 10 * window, 10 * window - 5, window + 2]
    const isNew = [true, true, true, false, false, true, false, true, false, true, true, false]
    assert.deepStrictEqual(
      order.map((number) => numbers.use(number)),
      isNew
    )
    for (const number of [Number.NaN, 0.5, Infinity, -1]) assert.isFalse(numbers.use(number))
  })
})

/**
 * Records all that patched parts of the runtime get to see, reads every place that code can read, and tries
 * each text and each few bytes as the key of the calls that it has seen.
 */
const thief = `
  import fs from "node:fs"
  import * as calls from "./__svc_calls.mjs"
  import * as storage from "./__svc_storage.mjs"
  import { env as global } from "cloudflare:workers"
  // An \`await\` reads \`constructor\` of a promise, and a promise reads \`then\` of its value.
  let isTrying = false
  const promises = new Set()
  const resolved = new Set()
  const { constructor } = Promise.prototype
  Object.defineProperty(Promise.prototype, "constructor", {
    get() {
      if (!isTrying) promises.add(this)
      return constructor
    }
  })
  Object.defineProperty(Object.prototype, "then", {
    get() { if (!isTrying) resolved.add(this) },
    set(value) { Object.defineProperty(this, "then", { value, writable: true, configurable: true }) }
  })
  const seen = new Set()
  const macs = new Map()
  const { subtle } = crypto
  const real = { importKey: subtle.importKey.bind(subtle), sign: subtle.sign.bind(subtle) }
  const encoder = new TextEncoder()
  const frames = []
  Error.prepareStackTrace = (_, sites) => {
    for (const site of sites) frames.push(site.getThis(), site.getFunction())
    return ""
  }
  const note = (value, depth = 0) => {
    if (isTrying || depth > 3) return
    if (typeof value === "string" || value instanceof Uint8Array) seen.add(value)
    else if (value instanceof ArrayBuffer) seen.add(new Uint8Array(value))
    else if (value !== null && typeof value === "object") {
      for (const key of Object.getOwnPropertyNames(value)) {
        try { note(key, depth + 1); note(value[key], depth + 1) } catch {}
      }
    }
  }
  const patch = (object, name) => {
    const original = object[name]
    const wrapped = function (...args) {
      note(this)
      args.forEach((arg) => note(arg))
      const result = Reflect.apply(original, this, args)
      note(result)
      return result
    }
    try { object[name] = wrapped } catch {}
  }
  const { apply } = Reflect
  for (const [object, names] of [
    [subtle, ["importKey", "verify", "sign", "digest"]],
    [SubtleCrypto.prototype, ["importKey", "verify", "sign", "digest"]],
    [Uint8Array, ["fromHex", "from", "of"]],
    [Uint8Array.prototype, ["toHex", "set", "subarray"]],
    [TextEncoder.prototype, ["encode"]],
    [TextDecoder.prototype, ["decode"]],
    [JSON, ["parse", "stringify"]]
  ]) for (const name of names) patch(object, name)
  const get = Headers.prototype.get
  Headers.prototype.get = function (name) {
    const value = apply(get, this, [name])
    if (name === "x-svc-call" && value !== null) macs.set(value.slice(0, 64), value.slice(64))
    note(value)
    return value
  }
  const hex = /[0-9a-f]{64}/g
  const bytes = (text) => Uint8Array.from(text.match(/../g), (pair) => Number.parseInt(pair, 16))
  export default { async fetch(request, env) {
    await env.svc.players.get("pl_1")
    isTrying = false
    for (const place of [env, global, calls, storage, globalThis, process.env]) note(place)
    for (const name of [...Object.keys(env), ...Object.keys(global)]) {
      for (const it of [env[name], global[name]]) { note(String(it)); note(it) }
    }
    for (const name of fs.readdirSync("/bundle")) note(fs.readFileSync("/bundle/" + name, "utf8"))
    for (const wrapped of [calls.serve, storage.guardedEnv]) note(wrapped.toString())
    for (const frame of frames) note(frame, -3)
    for (const name of ["svc-authentic", "svc-host", "__svc_authentic"]) {
      for (const prefix of ["", "./", "/functions/", "miniflare-internal:wrapped:", "cloudflare-internal:"]) {
        for (const end of ["", ".js", ".mjs"]) {
          try { note(await import(prefix + name + end)) } catch {}
        }
      }
    }
    const shown = [...promises].map((promise) => Promise.race([promise, undefined]))
    const values = await Promise.allSettled(shown)
    const held = [...resolved, ...values.map(({ value }) => value)].filter((it) => it instanceof CryptoKey)
    isTrying = true
    const keys = []
    for (const value of seen) {
      if (typeof value !== "string") keys.push(value)
      else { for (const [text] of value.matchAll(hex)) keys.push(bytes(text), encoder.encode(text)) }
    }
    const found = []
    for (const key of keys) {
      if (key.length === 0 || key.length > 128) continue
      for (const [mac, text] of macs) {
        const imported = await real.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"])
        const made = new Uint8Array(await real.sign("HMAC", imported, encoder.encode("call\\n" + text)))
        if (Array.from(made, (byte) => byte.toString(16).padStart(2, "0")).join("") === mac) found.push(mac)
      }
    }
    isTrying = false
    const sizes = { promises: promises.size, resolved: resolved.size, macs: macs.size }
    return Response.json({ found, held: held.length, tried: keys.length, ...sizes })
  } }`
