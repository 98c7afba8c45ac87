/** Functions through the whole service: from a deployment to requests, players and sockets. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { WebSocket } from "ws"
import { poolLayer } from "#sql/database"
import { TestApp, TestDatabase } from "#testing/app"
import { at, guest } from "#testing/players"
import { call as control, deploy, enable } from "../../support/function-calls.ts"
import { visit } from "../../support/hosting.ts"
import { operate } from "../../support/operate.ts"
import { DatabaseLive } from "../../support/service.ts"
import { eventually } from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const Rows = Layer.unwrap(
  Effect.map(TestDatabase, ({ url }) => poolLayer({ url: Redacted.make(url), connections: 1 }))
)

const App = TestApp.layerWith({ SVC_HOSTING_DOMAIN: "apps.example.net" }).pipe(
  Layer.provideMerge(Rows),
  Layer.provideMerge(DatabaseLive)
)

const code = `
  const endless = () => new ReadableStream({ pull: (out) => out.enqueue(new Uint8Array(65536)) })
  export default { async fetch(request, env) {
    const { pathname } = new URL(request.url)
    if (pathname === "/full") return new Response("The room is full.", { status: 409 })
    if (pathname === "/keep") await env.KEPT.put("key", "kept")
    if (pathname === "/keep" || pathname === "/kept") return Response.json(await env.KEPT.get("key"))
    if (pathname === "/endless") return new Response(endless(), { status: 418 })
    if (pathname === "/forged") return new Response("no JSON", { headers: { "x-svc-outcome": "failed" } })
    if (pathname.startsWith("/save/")) {
      const put = env.svc.saves.put(pathname.slice(6), "slot", {})
      return Response.json(await put.then(() => "saved", ({ code }) => code))
    }
    if (request.headers.get("upgrade") === "websocket") {
      const { 0: client, 1: server } = new WebSocketPair()
      server.accept()
      server.addEventListener("message", ({ data }) => server.send("echo " + data))
      return new Response(null, { status: 101, webSocket: client })
    }
    return Response.json({
      url: request.url,
      method: request.method,
      body: await request.text(),
      player: request.headers.get("svc-player"),
      cookie: request.headers.get("cookie")
    }, { headers: { "set-cookie": "a=b" } })
  } }`

const setUp = Effect.gen(function* () {
  const app = yield* TestApp
  yield* enable(app)
  const deployment = yield* deploy(app, { bindings: [{ name: "KEPT", type: "kv" }] }, code)
  const url = String(at(deployment, "url"))
  const label = url.slice(url.lastIndexOf("/") + 1)
  const call = (path: string, init: RequestInit = {}) =>
    Effect.promise(async () => {
      const response = await fetch(`${app.url}/fn/${label}${path}`, init)
      return { status: response.status, headers: response.headers, body: await response.json() }
    })
  return { app, label, call }
})

layer(App, live)("the data plane of functions", (it) => {
  it.effect("serves the label of an environment, with the player of a valid token alone", () =>
    Effect.gen(function* () {
      const { app, call, label } = yield* setUp
      const player = yield* guest(app)
      const headers = { authorization: `Bearer ${player.accessToken}`, cookie: "dashboard=1" }
      const answer = yield* call("/a/b?c=d", { method: "POST", body: "text", headers })
      assert.strictEqual(answer.status, 200)
      const { url, ...seen } = answer.body
      assert.match(url, /^https?:\/\/[^/]+\/a\/b\?c=d$/)
      assert.deepStrictEqual(seen, {
        method: "POST",
        body: "text",
        player: player.id,
        cookie: null
      })
      assert.isNull(answer.headers.get("set-cookie"))
      const forged = { authorization: "Bearer nonsense", "svc-player": player.id }
      assert.isNull((yield* call("", { headers: forged })).body.player)
      const host = `${label}.apps.example.net`
      const own = yield* visit(app.url, host, "/.fn/x?y", { cookie: "game=1" })
      const body = JSON.parse(own.body.toString())
      assert.match(body.url, /^https?:\/\/.*apps\.example\.net[^/]*\/x\?y$/)
      assert.strictEqual(body.cookie, "game=1")
    })
  )

  it.effect("opens sockets of functions", () =>
    Effect.gen(function* () {
      const { app, label } = yield* setUp
      const heard: Array<string> = []
      const socket = new WebSocket(`${app.url.replace("http", "ws")}/fn/${label}/room`)
      socket.on("open", () => socket.send("a")).on("message", (data) => heard.push(String(data)))
      yield* eventually(() => heard.length > 0, "the echo arrives")
      assert.deepStrictEqual(heard, ["echo a"])
      socket.terminate()
    })
  )

  it.effect("passes on in which words a function refuses a socket, but no forged outcome", () =>
    Effect.gen(function* () {
      const { app, label } = yield* setUp
      const refusalOf = (path: string) =>
        Effect.callback<{ status: number | undefined; text: string }>((resume) => {
          const socket = new WebSocket(`${app.url.replace("http", "ws")}/fn/${label}/${path}`)
          socket.on("error", () => undefined)
          socket.on("unexpected-response", (_, answer) => {
            let text = ""
            answer.on("data", (chunk) => (text += String(chunk)))
            answer.on("end", () => resume(Effect.succeed({ status: answer.statusCode, text })))
          })
        })
      assert.deepStrictEqual(yield* refusalOf("full"), { status: 409, text: "The room is full." })
      const endless = yield* refusalOf("endless")
      assert.strictEqual(endless.status, 418)
      assert.match(endless.text, /^\0{8192,}$/)
      // A response that claims to be the service's word is the function's own.
      assert.deepStrictEqual(yield* refusalOf("forged"), { status: 200, text: "no JSON" })
    })
  )

  it.effect("keeps the code and the data of functions while they are disabled", () =>
    Effect.gen(function* () {
      const { app, call } = yield* setUp
      assert.strictEqual((yield* call("/keep")).body, "kept")
      assert.strictEqual((yield* control(app, "POST", "/disable")).status, 200)
      const isOff = Effect.map(call("/kept"), ({ status }) => status === 404)
      yield* app.eventually(isOff, "the function is off")
      yield* enable(app)
      const found = Effect.map(call("/kept"), ({ body, status }) =>
        status === 200 ? { body } : undefined
      )
      const { body } = yield* app.eventually(found, "the function is on again")
      assert.strictEqual(body, "kept")
    })
  )

  it.effect("refuses calls of suspended functions until the operator resumes them", () =>
    Effect.gen(function* () {
      const { app, call } = yield* setUp
      const { url: databaseUrl } = yield* TestDatabase
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql`
        select id from environments where name = 'development' and project_id = ${app.project}`
      const act = (word: string) => operate(databaseUrl, "functions", word, String(row?.["id"]))
      const awaitCode = (code: string) =>
        app.eventually(
          Effect.map(call("/"), (answer) => (at(answer.body, "error", "code") ?? "ok") === code),
          `a call of the function answers ${code}`
        )
      yield* awaitCode("ok")
      assert.include(yield* act("suspend"), "is suspended")
      yield* awaitCode("functions_suspended")
      assert.include(yield* act("resume"), "is resumed")
      yield* awaitCode("ok")
    })
  )

  it.effect("lets a function save for players of its own environment only", () =>
    Effect.gen(function* () {
      const { app, call } = yield* setUp
      const own = yield* guest(app)
      const foreign = yield* guest(app.production)
      assert.strictEqual((yield* call(`/save/${own.id}`)).body, "saved")
      assert.strictEqual((yield* call(`/save/${foreign.id}`)).body, "player_not_found")
    })
  )

  it.effect("answers 404 for labels and environments without a function", () =>
    Effect.gen(function* () {
      const { app, label } = yield* setUp
      const production = label.replace(/--dev$/, "")
      for (const unknown of ["nobody", `v1--${label}`, production, ""]) {
        const response = yield* Effect.promise(() => fetch(`${app.url}/fn/${unknown}/`))
        assert.strictEqual(response.status, 404, unknown)
      }
    })
  )
})
