/** Pages of other origins and functions: preflights, readable responses, and origins that may not call. */
import { once } from "node:events"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { WebSocket } from "ws"
import { TestApp } from "#testing/app"
import { at, configure, guest, type TestTarget } from "#testing/players"
import { deploy, enable } from "../../support/function-calls.ts"
import { visit } from "../../support/hosting.ts"
import { DatabaseLive } from "../../support/service.ts"

const domain = "apps.example.net"

const App = TestApp.layerWith({ SVC_HOSTING_DOMAIN: domain }).pipe(Layer.provideMerge(DatabaseLive))

const code = `
  let calls = 0
  const headers = {
    own: { "access-control-allow-origin": "https://own.example", "access-control-expose-headers": "x-own" },
    credentials: { "access-control-allow-credentials": "true" },
    vary: { vary: "Accept" },
    any: { vary: "*" }
  }
  export default { fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === "/calls") return Response.json(calls)
    calls += 1
    if (pathname === "/throw") throw new Error("broken")
    if (request.headers.get("upgrade") === "websocket") {
      const { 0: client, 1: server } = new WebSocketPair()
      server.accept()
      return new Response(null, { status: 101, webSocket: client })
    }
    const { method } = request
    return Response.json({ method, player: request.headers.get("svc-player") }, { headers: headers[pathname.slice(1)] })
  } }`

const page = "https://game.example"

/** Headers of a preflight. */
const preflight = (method: string, origin = page) => ({
  origin,
  "access-control-request-method": method,
  "access-control-request-headers": "authorization,x-own"
})

/** The functions of an environment, at the base URL and at the host of its app. */
const setUp = Effect.fnUntraced(function* (target: TestTarget, rest: object = {}) {
  yield* enable(target)
  const url = new URL(String(at(yield* deploy(target, rest, code), "url")))
  const label = url.pathname.slice("/fn/".length)
  const send = (method: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
    visit(target.url, url.host, `/fn/${label}${path}`, headers, method)
  const sendToApp = (
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {}
  ) => visit(target.url, `${label}.${domain}`, `/.fn${path}`, headers, method)
  const calls = Effect.map(send("GET", "/calls"), ({ body }) => Number(body.toString()))
  return { calls, label, send, sendToApp }
})

const codeOf = (body: Buffer): unknown => at(JSON.parse(body.toString()), "error", "code")

/** The status with which a handshake ends: 101, or that of the refusal. */
const handshake = (target: TestTarget, label: string, origin: string) =>
  Effect.promise(async () => {
    const socket = new WebSocket(`${target.url.replace("http", "ws")}/fn/${label}/`, { origin })
    socket.on("error", () => undefined)
    const opened = once(socket, "open").then(() => 101)
    const refused = once(socket, "unexpected-response").then(([, answer]) =>
      Number(at(answer, "statusCode"))
    )
    const status = await Promise.race([opened, refused])
    socket.terminate()
    return status
  })

layer(App, { timeout: "120 seconds", excludeTestServices: true })("pages and functions", (it) => {
  it.effect(
    "lets pages send any method and header, without a call of the function",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const { calls, send, sendToApp } = yield* setUp(app)
        const before = yield* calls
        for (const method of [
          "GET",
          "HEAD",
          "POST",
          "PUT",
          "PATCH",
          "DELETE",
          "OPTIONS",
          "PURGE"
        ]) {
          for (const to of [send, sendToApp]) {
            const { body, headers, status } = yield* to("OPTIONS", "/a/b?c", preflight(method))
            assert.deepStrictEqual([status, body.length], [204, 0], method)
            assert.strictEqual(headers["access-control-allow-origin"], "*")
            assert.strictEqual(headers["access-control-allow-methods"], method)
            assert.strictEqual(headers["access-control-allow-headers"], "authorization,x-own")
            assert.match(String(headers["access-control-max-age"]), /^\d+$/)
            assert.isUndefined(headers["access-control-allow-credentials"])
          }
        }
        assert.strictEqual(yield* calls, before)
        // Other requests of this method are the function's.
        const { body } = yield* send("OPTIONS", "/", { origin: page })
        assert.strictEqual(at(JSON.parse(body.toString()), "method"), "OPTIONS")
      }),
    { tags: "long" }
  )

  it.effect("lets pages of any origin read responses, unless the function decides itself", () =>
    Effect.gen(function* () {
      const { send, sendToApp } = yield* setUp(yield* TestApp)
      for (const to of [send, sendToApp]) {
        for (const origin of [page, "null", "http://localhost:5173"]) {
          const { headers } = yield* to("GET", "/", { origin })
          assert.strictEqual(headers["access-control-allow-origin"], "*")
          assert.strictEqual(headers["vary"], "Origin")
        }
        const own = (yield* to("GET", "/own", { origin: page })).headers
        assert.strictEqual(own["access-control-allow-origin"], "https://own.example")
        assert.strictEqual(own["access-control-expose-headers"], "x-own")
        assert.isUndefined(own["vary"])
        const { headers } = yield* to("GET", "/credentials", { origin: page })
        // Browsers give no response with credentials to a page by this.
        assert.strictEqual(headers["access-control-allow-origin"], "*")
        assert.strictEqual((yield* to("GET", "/vary")).headers["vary"], "Accept, Origin")
        assert.strictEqual((yield* to("GET", "/any")).headers["vary"], "*")
      }
    })
  )

  it.effect("lets pages read why a call has failed", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { send } = yield* setUp(app)
      const thrown = yield* send("GET", "/throw", { origin: page })
      const expired = yield* send("GET", "/", { origin: page, authorization: "Bearer a.b.c" })
      assert.strictEqual(expired.status, 200, "a token of others is no player's")
      const unknown = yield* visit(app.url, "a", "/fn/no-such-game/x", { origin: page })
      const asked = yield* visit(app.url, "a", "/fn/no-such-game/x", preflight("PUT"), "OPTIONS")
      assert.strictEqual(asked.status, 204)
      for (const [{ body, headers, status }, expected] of [
        [thrown, [500, "function_error"]],
        [unknown, [404, "not_found"]]
      ] as const) {
        assert.deepStrictEqual([status, codeOf(body)], [...expected])
        assert.strictEqual(headers["access-control-allow-origin"], "*")
      }
    })
  )

  it.effect("refuses origins that web.allowedOrigins lacks, before the function runs", () =>
    Effect.gen(function* () {
      const { production } = yield* TestApp
      yield* configure(production, { web: { allowedOrigins: [page] } })
      const { calls, label, send, sendToApp } = yield* setUp(production)
      const before = yield* calls
      for (const origin of [
        "https://evil.example",
        "http://localhost:5173",
        "https://game.example.evil"
      ]) {
        for (const to of [send, sendToApp]) {
          const { body, headers, status } = yield* to("POST", "/", { origin })
          assert.deepStrictEqual([status, codeOf(body)], [403, "origin_not_allowed"])
          // Its page may read that it is refused.
          assert.strictEqual(headers["access-control-allow-origin"], "*")
          assert.strictEqual((yield* to("OPTIONS", "/", preflight("PUT", origin))).status, 204)
        }
        assert.strictEqual(yield* handshake(production, label, origin), 403)
      }
      assert.strictEqual(yield* calls, before)
      // Pages below /fn have no origin.
      const app = `http://${label}.${domain}:8080`
      for (const origin of [page, "null", app]) {
        const { headers, status } = yield* send("POST", "/", { origin })
        assert.strictEqual(status, 200, origin)
        const allowed = origin === "null" ? "*" : origin
        assert.strictEqual(headers["access-control-allow-origin"], allowed)
        assert.strictEqual(headers["vary"], "Origin")
        assert.strictEqual(yield* handshake(production, label, origin), 101)
      }
      // No page: nothing to allow, but a cache must know what the response depends on.
      const { headers, status } = yield* send("GET", "/")
      assert.deepStrictEqual([status, headers["vary"]], [200, "Origin"])
      assert.isUndefined(headers["access-control-allow-origin"])
      yield* configure(production, {})
    })
  )

  it.effect("leaves everything to a deployment with `cors: false`, from the deployment on", () =>
    Effect.gen(function* () {
      const { production } = yield* TestApp
      yield* configure(production, { web: { allowedOrigins: [page] } })
      const { label, send } = yield* setUp(production, { cors: false })
      const { body, headers, status } = yield* send(
        "OPTIONS",
        "/",
        preflight("PUT", "https://evil.example")
      )
      assert.deepStrictEqual([status, at(JSON.parse(body.toString()), "method")], [200, "OPTIONS"])
      assert.isUndefined(headers["access-control-allow-origin"])
      assert.isUndefined(headers["vary"])
      assert.strictEqual((yield* send("POST", "/", { origin: "https://evil.example" })).status, 200)
      assert.strictEqual(yield* handshake(production, label, "https://evil.example"), 101)
      yield* setUp(production)
      assert.strictEqual((yield* send("POST", "/", { origin: "https://evil.example" })).status, 403)
      yield* configure(production, {})
    })
  )

  it.effect("takes the publishable key in place of the label", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* setUp(app)
      const { accessToken, id } = yield* guest(app)
      const to = (key: string) =>
        visit(app.url, "a", `/fn/${key}/x`, { authorization: `Bearer ${accessToken}` })
      const { body, status } = yield* to(app.publishableKey)
      assert.deepStrictEqual(
        [status, JSON.parse(body.toString())],
        [200, { method: "GET", player: id }]
      )
      for (const key of [app.secretKey, `${app.publishableKey.slice(0, -1)}_`, "pk_1"]) {
        const refused = yield* to(key)
        assert.deepStrictEqual([refused.status, codeOf(refused.body)], [401, "invalid_key"])
      }
    })
  )
})
