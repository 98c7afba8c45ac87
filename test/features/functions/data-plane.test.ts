/** Functions through the whole service: from a deployment to requests, players and sockets. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { WebSocket } from "ws"
import { TestApp } from "#testing/app"
import { at, guest } from "#testing/players"
import { deploy, enable } from "../../support/function-calls.ts"
import { visit } from "../../support/hosting.ts"
import { DatabaseLive } from "../../support/service.ts"
import { eventually } from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const App = TestApp.layerWith({ SVC_HOSTING_DOMAIN: "apps.example.net" }).pipe(
  Layer.provide(DatabaseLive)
)

const code = `
  const endless = () => new ReadableStream({ pull: (out) => out.enqueue(new Uint8Array(65536)) })
  export default { async fetch(request, env) {
    const { pathname } = new URL(request.url)
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
  const deployment = yield* deploy(app, {}, code)
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

  it.effect(
    "passes why a function refuses a socket, however much it says, and whatever it forges",
    () =>
      Effect.gen(function* () {
        const { app, label } = yield* setUp
        const statusOf = (path: string) =>
          Effect.callback<number | undefined>((resume) => {
            const socket = new WebSocket(`${app.url.replace("http", "ws")}/fn/${label}/${path}`)
            socket.on("error", () => undefined)
            socket.on("unexpected-response", (_, answer) => {
              answer.destroy()
              resume(Effect.succeed(answer.statusCode))
            })
          })
        assert.strictEqual(yield* statusOf("endless"), 418)
        assert.strictEqual(yield* statusOf("forged"), 500)
      })
  )

  it.effect("saves for players of its own environment only", () =>
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
