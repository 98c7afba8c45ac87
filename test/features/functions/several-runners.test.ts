/**
 * Functions on several runners: each environment runs on one of them, and every runner answers its calls.
 * @module-tag long
 */
import { request } from "node:http"
import { text as readText } from "node:stream/consumers"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { WebSocket } from "ws"
import { at, configure } from "#testing/players"
import type { Runner } from "#testing/runners"
import { call, deploy, enable } from "../../support/function-calls.ts"
import { upload } from "../../support/function-uploads.ts"
import { TwoRunners } from "../../support/two-runners.ts"

const code = `
  export default { async fetch(request, env) {
    const { pathname } = new URL(request.url)
    if (request.headers.get("upgrade") === "websocket") {
      const { 0: client, 1: server } = new WebSocketPair()
      server.accept()
      server.addEventListener("message", ({ data }) => server.send("echo " + data))
      return new Response(null, { status: 101, webSocket: client })
    }
    if (pathname === "/size") return Response.json((await request.arrayBuffer()).byteLength)
    if (pathname === "/refused") return new Response("no", { status: 403 })
    if (pathname === "/back") return new Response(request.body)
    await env.DB.exec("create table if not exists notes (text text)")
    if (pathname === "/count") {
      return Response.json((await env.DB.prepare("select count(*) as n from notes").first()).n)
    }
    await env.DB.prepare("insert into notes values (?)").bind(pathname).run()
    return Response.json(request.headers.get("cf-connecting-ip"))
  } }`

const bindings = [{ name: "DB", type: "db" }]

const fetchFrom = (runner: Runner, label: string, path: string, init: RequestInit = {}) =>
  Effect.promise(async () => {
    const response = await fetch(`${runner.url}/fn/${label}${path}`, init)
    const text = await response.text()
    return { status: response.status, text }
  })

/** The environment on several runners, with the label of its function. */
const setUp = Effect.gen(function* () {
  const runners = yield* TwoRunners
  const { at1: target, first, second } = runners
  yield* Effect.addFinalizer((exit) =>
    Effect.sync(() => {
      if (exit._tag === "Failure") process.stderr.write(`${first.output()}\n${second.output()}`)
    })
  )
  yield* enable(target)
  const url = String(at(yield* deploy(target, { bindings }, code), "url"))
  return { ...runners, target, label: url.slice(url.lastIndexOf("/") + 1) }
})

const echo = (url: string) =>
  Effect.callback<string>((resume) => {
    const socket = new WebSocket(url)
    socket.once("open", () => socket.send("hello"))
    socket.once("message", (data: Buffer) => {
      socket.close()
      resume(Effect.succeed(data.toString()))
    })
    socket.once("error", (error) => resume(Effect.die(error)))
  })

/** Sends a body once the runner has asked for it; returns what was answered. */
const sendWhenAsked = (url: string) =>
  Effect.callback<string>((resume) => {
    const headers = { expect: "100-continue", "content-length": "5" }
    const sent = request(url, { method: "POST", headers })
    sent.once("continue", () => sent.end("12345"))
    sent.once("response", (answer) => resume(Effect.promise(() => readText(answer))))
    sent.once("error", (error) => resume(Effect.die(error)))
    sent.flushHeaders()
  })

/** Calls until the effect ends; returns what failed. */
const during = <A, E, R>(work: Effect.Effect<A, E, R>, runner: Runner, label: string) =>
  Effect.gen(function* () {
    const failures: Array<string> = []
    let calls = 0
    const state = { isOver: false }
    const client = Effect.gen(function* () {
      while (!state.isOver) {
        const { status, text } = yield* fetchFrom(runner, label, "/steady")
        calls += 1
        if (status !== 200) failures.push(`${status} ${text}`)
      }
    })
    yield* Effect.all(
      [
        Effect.ensuring(
          work,
          Effect.sync(() => (state.isOver = true))
        ),
        ...Array.from({ length: 4 }, () => client)
      ],
      { concurrency: "unbounded", discard: true }
    )
    return { calls, failures }
  })

const refusedUploads = 6

const patient = { excludeTestServices: true, timeout: "240 seconds" } as const

layer(TwoRunners.layerWith(), patient)("functions on several runners", (it) => {
  const run = () =>
    Effect.gen(function* () {
      const { first, label, second, target } = yield* setUp
      // One database.
      assert.strictEqual((yield* fetchFrom(second, label, "/a")).status, 200)
      assert.deepStrictEqual(yield* fetchFrom(first, label, "/b"), {
        status: 200,
        text: '"127.0.0.1"'
      })
      for (const runner of [first, second]) {
        assert.deepStrictEqual(yield* fetchFrom(runner, label, "/count"), {
          status: 200,
          text: "2"
        })
        const { body } = yield* call({ ...target, url: runner.url }, "POST", "/db/DB/query", {
          sql: "select count(*) as n from notes"
        })
        assert.deepStrictEqual(at(body, "rows"), [[2]])
        // Bodies in both directions, with a length and without.
        const bytes = new Uint8Array(3_000_000).fill(65)
        const sized = yield* fetchFrom(runner, label, "/size", { method: "POST", body: bytes })
        assert.deepStrictEqual(sized, { status: 200, text: "3000000" })
        assert.strictEqual(yield* sendWhenAsked(`${runner.url}/fn/${label}/size`), "5")
        const stream = new Blob([bytes]).stream()
        const init = { method: "POST", body: stream, duplex: "half" } as RequestInit
        const back = yield* fetchFrom(runner, label, "/back", init)
        assert.strictEqual(back.text.length, 3_000_000)
        // An answer before the body has been read.
        for (let i = 0; i < refusedUploads; i += 1) {
          const url = `${runner.url}/fn/${label}/refused`
          const answer = yield* Effect.promise(() => upload({ url, bytes: 20_000_000 }))
          assert.match(answer, /^HTTP\/1\.1 403 [^]*no/)
        }
        assert.strictEqual(yield* echo(`${runner.socketUrl}/fn/${label}/`), "echo hello")
      }
      // A deployment is in force on both at once.
      for (const runner of [first, second]) {
        const next = code.replace("/size", `/size${runner.node}`)
        yield* deploy({ ...target, url: runner.url }, { bindings }, next)
        for (const one of [first, second]) {
          const sized = yield* fetchFrom(one, label, `/size${runner.node}`)
          assert.strictEqual(sized.text, "0")
        }
      }
      // The first enabled them, so it has the environment.
      const moved = yield* during(first.stop, second, label)
      assert.deepStrictEqual(moved.failures, [])
      const count = Number((yield* fetchFrom(second, label, "/count")).text)
      assert.strictEqual(count, 2 + moved.calls)
    }).pipe(Effect.scoped)
  it.effect("answers pages of other origins alike on each runner, and denies the others", () =>
    Effect.gen(function* () {
      const { first, label, second, target } = yield* setUp
      const page = "https://game.example"
      const ask = (runner: Runner, name: string, origin: string, init: RequestInit = {}) =>
        Effect.promise(async () => {
          const headers = { origin, ...init.headers }
          const response = await fetch(`${runner.url}/fn/${name}/refused`, { ...init, headers })
          await response.arrayBuffer()
          return [response.status, response.headers.get("access-control-allow-origin")]
        })
      const preflight = {
        method: "OPTIONS",
        headers: { "access-control-request-method": "PUT" }
      }
      for (const runner of [first, second]) {
        for (const name of [label, target.publishableKey]) {
          assert.deepStrictEqual(yield* ask(runner, name, page), [403, "*"])
          assert.deepStrictEqual(yield* ask(runner, name, page, preflight), [204, "*"])
        }
      }
      yield* configure(target, { web: { allowedOrigins: [page] } })
      for (const runner of [first, second]) {
        assert.deepStrictEqual(yield* ask(runner, label, page), [403, page])
        const foreign = yield* fetchFrom(runner, label, "/b", {
          headers: { origin: "https://evil.example" }
        })
        assert.deepStrictEqual(
          [foreign.status, at(JSON.parse(foreign.text), "error", "code")],
          [403, "origin_not_allowed"]
        )
      }
      yield* configure(target, {})
    })
  )

  it.effect(
    "serves functions at each runner, and keeps them when the runner that has them stops",
    run,
    240_000
  )
})
