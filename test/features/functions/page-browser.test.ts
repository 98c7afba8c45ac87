/**
 * Functions and pages of another origin in a real browser, which enforces the rules of CORS.
 *
 * @module-tag long
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Client, createClient } from "#client/client"
import { TestApp } from "#testing/app"
import { configure, type TestTarget } from "#testing/players"
import { deploy, enable } from "../../support/function-calls.ts"
import { Chromium, installed, needsChromium, newVisitor } from "../../support/client/chromium.ts"
import { DatabaseLive } from "../../support/service.ts"

const App = Layer.merge(TestApp.layerWith().pipe(Layer.provideMerge(DatabaseLive)), Chromium.layer)

const code = `export default { async fetch(request) {
  const { pathname } = new URL(request.url)
  if (pathname === "/throw") throw new Error("broken")
  if (pathname === "/own") {
    return Response.json({ error: { code: "no_coins", message: "Earn some." } }, { status: 402 })
  }
  if (pathname === "/tea") return new Response("short and stout", { status: 418 })
  if (request.headers.get("upgrade") === "websocket") {
    const { 0: client, 1: server } = new WebSocketPair()
    server.accept()
    server.addEventListener("message", ({ data }) => server.send("echo " + data))
    return new Response(null, { status: 101, webSocket: client })
  }
  return Response.json({ method: request.method, player: request.headers.get("svc-player") })
} }`

declare global {
  interface Window {
    readonly createClient: typeof createClient
    readonly client: Client
  }
}

/** A page of another origin than the service, with the client of the service. */
const servePage = Effect.fnUntraced(function* ({ url }: TestTarget) {
  const html = `<!doctype html><script type="module">
    import { createClient } from "${url}/sdk/client.js"
    Object.assign(window, { createClient })
    document.title = "Ready"
  </script>`
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end(html)
  })
  yield* Effect.callback<void>((resume) => {
    server.listen(0, "127.0.0.1", () => resume(Effect.void))
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => void server.close()))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

/** A tab with a client of the environment. */
const openTab = Effect.fnUntraced(function* (target: TestTarget) {
  yield* enable(target)
  yield* deploy(target, {}, code)
  const origin = yield* servePage(target)
  const visitor = yield* newVisitor()
  const { publishableKey: key, url: baseUrl } = target
  const tab = yield* Effect.promise(async () => {
    const page = await visitor.newPage()
    await page.goto(origin)
    await page.waitForFunction(() => document.title === "Ready")
    await page.evaluate(
      (options) => {
        Object.assign(window, { client: window.createClient(options) })
      },
      { baseUrl, key }
    )
    return page
  })
  return { origin, tab }
})

layer(App, { timeout: "120 seconds", excludeTestServices: true })(
  `functions and a page of another origin${needsChromium}`,
  (it) => {
    it.effect.skipIf(!installed)("calls with any method and reads responses and errors", () =>
      Effect.gen(function* () {
        const { tab } = yield* openTab(yield* TestApp)
        const seen = yield* Effect.promise(() =>
          tab.evaluate(async () => {
            const { functions, sessions } = window.client
            const codeOf = (call: Promise<unknown>) =>
              call.then(
                () => "none",
                (error: unknown) => (error instanceof Error && "code" in error ? error.code : "?")
              )
            const { id } = await sessions.ensure({ displayName: "Ada" })
            const methods: Array<unknown> = []
            for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"]) {
              const body = method === "GET" ? undefined : { score: 1 }
              const answer = await functions.call<{ method: string; player: string }>("x", body, {
                method,
                headers: { "x-own": "1" }
              })
              methods.push([answer.method, answer.player === id])
            }
            const echo = await new Promise((resolve) => {
              const socket = new WebSocket(functions.url("room").replace("http", "ws"))
              socket.addEventListener("open", () => socket.send("a"))
              socket.addEventListener("message", ({ data }) => resolve(data))
            })
            const withCookies = await fetch(functions.url("x"), { credentials: "include" }).then(
              () => "read",
              () => "refused"
            )
            return {
              methods,
              echo,
              withCookies,
              codes: [
                await codeOf(functions.call("throw")),
                await codeOf(functions.call("own", {})),
                await codeOf(functions.call("tea"))
              ]
            }
          })
        )
        assert.deepStrictEqual(seen, {
          methods: ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"].map((method) => [
            method,
            true
          ]),
          echo: "echo a",
          // The service allows no credentials.
          withCookies: "refused",
          codes: ["function_error", "no_coins", "function_refused"]
        })
      }).pipe(Effect.scoped)
    )

    it.effect.skipIf(!installed)("reads that its origin is not in web.allowedOrigins", () =>
      Effect.gen(function* () {
        const { production } = yield* TestApp
        const { origin, tab } = yield* openTab(production)
        const call = () =>
          Effect.promise(() =>
            tab.evaluate(() =>
              window.client.functions.call("x", {}, { anonymous: true }).then(
                () => "none",
                (error: unknown) => (error instanceof Error && "code" in error ? error.code : "?")
              )
            )
          )
        yield* configure(production, { web: { allowedOrigins: ["https://game.example"] } })
        assert.strictEqual(yield* call(), "origin_not_allowed")
        yield* configure(production, { web: { allowedOrigins: [origin] } })
        assert.strictEqual(yield* call(), "none")
      }).pipe(Effect.scoped)
    )
  }
)
