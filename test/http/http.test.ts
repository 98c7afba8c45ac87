/** Behavior common to all requests: ids, CORS, methods, bodies, defects and the error format. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpServerHandle } from "#server/http/server"
import { at, request, type TestResponse } from "#testing/players"
import { sendRaw } from "../support/http/raw.ts"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"

const Faulty = HttpRouter.add("GET", "/boom", Effect.die(new Error("the secret of the fault")))

const Node = nodeWith({}, Faulty).pipe(Layer.provideMerge(SharedDatabase.layer))

const codeOf = ({ body }: Pick<TestResponse, "body">) => at(body, "error", "code")

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  const key = { "x-svc-key": development.publishableKey }
  const guest = (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
    request(`${url}/v1/auth/guest`, { method: "POST", headers: { ...key, ...headers }, body })
  return { url, key, guest, secret: { "x-svc-key": development.secretKey } }
})

layer(Node)("requests", (it) => {
  it.effect("returns a request id: the client's if it is valid, otherwise a new one", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp
      const idOf = (path: string, given?: string) =>
        Effect.map(
          request(
            `${url}${path}`,
            given === undefined ? {} : { headers: { "x-request-id": given } }
          ),
          ({ headers }) => headers.get("x-request-id")
        )
      assert.strictEqual(yield* idOf("/healthz", "trace-1:a.b_c"), "trace-1:a.b_c")
      const made = yield* Effect.forEach(["/healthz", "/nowhere", "/boom", "/docs"], (path) =>
        idOf(path)
      )
      for (const id of made) assert.match(id ?? "", /^[0-9a-f]{8}-[0-9a-f-]{27}-\d+$/)
      assert.lengthOf(new Set(made), made.length)
      for (const given of ["", "a b", "x".repeat(65), "<script>"]) {
        assert.match((yield* idOf("/healthz", given)) ?? "", /^[0-9a-f]{8}-[0-9a-f-]{27}-\d+$/)
      }
    })
  )

  it.effect("answers 404 to an unknown path, and 405 with the allowed methods to a known one", () =>
    Effect.gen(function* () {
      const { key, url } = yield* setUp
      for (const path of ["/v1", "/v1/nowhere", "/v1/config/more", "/v1/%zz"]) {
        const answer = yield* request(`${url}${path}`, { headers: key })
        assert.strictEqual(answer.status, 404, path)
        assert.deepStrictEqual(answer.body, { error: { code: "not_found", message: "Not found." } })
      }
      const wrong = [
        ["DELETE", "/v1/config", "GET, PUT, HEAD, OPTIONS"],
        ["GET", "/v1/auth/guest", "POST, OPTIONS"],
        ["PUT", "/v1/players/me", "GET, PATCH, DELETE, HEAD, OPTIONS"],
        ["POST", "/v1/realtime", "GET, HEAD, OPTIONS"],
        ["POST", "/openapi.json", "GET, HEAD, OPTIONS"],
        ["POST", `/v1/saves/${"x".repeat(1000)}`, "GET, PUT, DELETE, HEAD, OPTIONS"]
      ] as const
      for (const [method, path, allow] of wrong) {
        const answer = yield* request(`${url}${path}`, { method })
        assert.strictEqual(answer.status, 405, path)
        assert.strictEqual(codeOf(answer), "method_not_allowed")
        assert.strictEqual(answer.headers.get("allow"), allow)
      }
    })
  )

  it.effect("answers HEAD with the response of GET without its body", () =>
    Effect.gen(function* () {
      const { secret, url } = yield* setUp
      const head = yield* request(`${url}/v1/config`, { method: "HEAD", headers: secret })
      assert.strictEqual(head.status, 200)
      assert.strictEqual(head.headers.get("etag"), '"0"')
      assert.strictEqual(head.body, "")
      assert.strictEqual((yield* request(`${url}/v1/config`, { method: "HEAD" })).status, 401)
    })
  )

  it.effect("sends CORS headers to any origin on every path", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp
      const origin = { origin: "https://game.example" }
      for (const path of ["/v1/rooms", "/v1/auth/guest", "/nowhere"]) {
        const preflight = yield* request(`${url}${path}`, {
          method: "OPTIONS",
          headers: { ...origin, "access-control-request-method": "PUT" }
        })
        assert.strictEqual(preflight.status, 204)
        const { headers } = preflight
        assert.strictEqual(headers.get("access-control-allow-origin"), "*")
        assert.strictEqual(
          headers.get("access-control-allow-headers"),
          "authorization,content-type,x-svc-key,idempotency-key,if-match," +
            "traceparent,tracestate,baggage,sentry-trace"
        )
        assert.include(headers.get("access-control-allow-methods") ?? "", "PATCH")
        assert.strictEqual(headers.get("access-control-max-age"), "86400")
        assert.isNull(headers.get("access-control-allow-credentials"))
        const answer = yield* request(`${url}${path}`, { headers: origin })
        assert.strictEqual(answer.headers.get("access-control-allow-origin"), "*")
        assert.strictEqual(
          answer.headers.get("access-control-expose-headers"),
          "x-request-id,retry-after,etag"
        )
      }
    })
  )

  it.effect("reads an empty body as an object where no field is needed, and nowhere else", () =>
    Effect.gen(function* () {
      const { guest, key, secret, url } = yield* setUp
      for (const body of [undefined, ""]) {
        assert.strictEqual((yield* guest(body)).status, 200)
        const refreshed = yield* request(`${url}/v1/auth/refresh`, {
          method: "POST",
          headers: key,
          body
        })
        assert.strictEqual(codeOf(refreshed), "invalid_request")
        const pushed = yield* request(`${url}/v1/config`, { method: "PUT", headers: secret, body })
        assert.strictEqual(pushed.status, 400)
      }
      const chunked = yield* sendRaw(
        url,
        `POST /v1/auth/guest HTTP/1.1\r\nHost: a\r\nX-Svc-Key: ${key["x-svc-key"]}\r\n` +
          "Content-Type: application/json\r\nConnection: close\r\n" +
          "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
      )
      assert.match(chunked, /^HTTP\/1\.1 200 /)
    })
  )

  it.effect("answers invalid_json to a body that is not JSON", () =>
    Effect.gen(function* () {
      const { guest } = yield* setUp
      for (const body of ["{", "{'a':1}", "{} {}", "undefined", "\u0000", "[", "nul"]) {
        const answer = yield* guest(body)
        assert.strictEqual(answer.status, 400, body)
        assert.strictEqual(codeOf(answer), "invalid_json", body)
      }
    })
  )

  it.effect("answers invalid_json to a body that is not UTF-8, and stores nothing of it", () =>
    Effect.gen(function* () {
      const { guest, key, secret, url } = yield* setUp
      const config = { method: "PUT", headers: secret }
      const saves = { version: 1, features: { saves: true } }
      yield* request(`${url}/v1/config`, { ...config, body: saves })
      const { body: session } = yield* guest({})
      const player = { ...key, authorization: `Bearer ${String(at(session, "accessToken"))}` }
      const save = `${url}/v1/saves/slot`
      for (const hex of ["80", "c0af", "e282", "eda080", "f4908080", "ff", "e9"]) {
        const around = (before: string, after: string) =>
          Buffer.concat([Buffer.from(before), Buffer.from(hex, "hex"), Buffer.from(after)])
        const answers = [
          yield* guest(around('{"displayName":"Ada', '"}')),
          yield* request(save, { method: "PUT", headers: player, body: around('{"data":"', '"}') }),
          yield* request(`${url}/v1/config`, {
            ...config,
            body: around('{"version":1,"$schema":"', '"}')
          })
        ]
        assert.deepStrictEqual(answers.map(codeOf), Array(3).fill("invalid_json"), hex)
        assert.deepStrictEqual(
          answers.map(({ status }) => status),
          [400, 400, 400]
        )
      }
      assert.strictEqual(codeOf(yield* request(save, { headers: player })), "save_not_found")
      const named = yield* guest({ displayName: "Zo\u00eb \ufffd" })
      assert.strictEqual(at(named.body, "player", "displayName"), "Zo\u00eb \ufffd")
    })
  )

  it.effect("answers invalid_request with each issue's path to a body of the wrong shape", () =>
    Effect.gen(function* () {
      const { guest, key, url } = yield* setUp
      const issuesOf = ({ body }: TestResponse) => at(body, "error", "details", "issues")
      for (const body of ["null", "[]", "7", '"text"']) {
        const answer = yield* guest(body)
        assert.strictEqual(codeOf(answer), "invalid_request", body)
        assert.strictEqual(at(issuesOf(answer), 0, "path"), "body", body)
      }
      const named = yield* guest({ displayName: ["Ada"] })
      assert.deepStrictEqual(issuesOf(named), [{ path: "displayName", message: "Expected string" }])
      const missing = yield* request(`${url}/v1/auth/refresh`, { headers: key, body: {} })
      assert.strictEqual(at(issuesOf(missing), 0, "path"), "refreshToken")
    })
  )

  it.effect("says in words what a query expects", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp
      const { development } = yield* makeTenants
      yield* configure(development, {
        features: { hosting: true },
        share: { tracking: { enabled: true } }
      })
      const headers = { "x-svc-key": development.secretKey }
      for (const path of [
        "admin/appeals?cursor=a%20b",
        "admin/functions/dead-letters?name=1",
        "admin/functions/deployments?cursor=x",
        "admin/share/stats?shareId=x",
        "config/versions?cursor=x",
        "deployments?cursor=x"
      ]) {
        const { body, status } = yield* request(`${url}/v1/${path}`, { headers })
        assert.strictEqual(status, 400, path)
        const message = String(at(body, "error", "details", "issues", 0, "message"))
        assert.match(message, /^Expected (?!.*RegExp)/, path)
      }
    })
  )

  it.effect("answers unsupported_media_type to another content type than JSON", () =>
    Effect.gen(function* () {
      const { guest } = yield* setUp
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data"
      ]) {
        const answer = yield* guest("{}", { "content-type": type })
        assert.strictEqual(answer.status, 415, type)
        assert.strictEqual(codeOf(answer), "unsupported_media_type", type)
      }
      const answer = yield* guest("{}", { "content-type": "application/json; charset=utf-8" })
      assert.strictEqual(answer.status, 200)
    })
  )

  it.effect("answers unsupported_media_type to an encoded body, without reading it", () =>
    Effect.gen(function* () {
      const { guest } = yield* setUp
      for (const coding of ["gzip", "br", "deflate", "identity, gzip"]) {
        const answer = yield* guest("{}", { "content-encoding": coding })
        assert.strictEqual(answer.status, 415, coding)
        assert.strictEqual(codeOf(answer), "unsupported_media_type", coding)
        assert.strictEqual(answer.headers.get("accept-encoding"), "identity")
      }
      assert.strictEqual((yield* guest("{}", { "content-encoding": "Identity" })).status, 200)
    })
  )

  it.effect("answers payload_too_large to a body over 16 KiB, with a length or chunked", () =>
    Effect.gen(function* () {
      const { guest, key, url } = yield* setUp
      const limit = 16 * 1024
      const answer = yield* guest({ pad: "x".repeat(limit) })
      assert.strictEqual(answer.status, 413)
      assert.deepStrictEqual(at(answer.body, "error", "details"), { limit })
      assert.strictEqual((yield* guest({ pad: "x".repeat(limit - 100) })).status, 200)

      const chunk = `${limit.toString(16)}\r\n${"x".repeat(limit)}\r\n`
      const chunked = yield* sendRaw(
        url,
        `POST /v1/auth/guest HTTP/1.1\r\nHost: a\r\nX-Svc-Key: ${key["x-svc-key"]}\r\n` +
          `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`
      )
      assert.match(chunked, /^HTTP\/1\.1 413 /)
      assert.include(chunked, '"code":"payload_too_large"')
    })
  )

  it.effect("answers upgrade_required at a WebSocket path without an upgrade", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp
      const answer = yield* request(`${url}/v1/realtime`)
      assert.strictEqual(answer.status, 426)
      assert.strictEqual(codeOf(answer), "upgrade_required")
      assert.strictEqual(answer.headers.get("upgrade"), "websocket")
    })
  )

  it.effect("returns only a request id when the handler has a defect", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp
      const answer = yield* request(`${url}/boom`, { headers: { "x-request-id": "find-me" } })
      assert.strictEqual(answer.status, 500)
      assert.strictEqual(codeOf(answer), "internal_error")
      assert.deepStrictEqual(at(answer.body, "error", "details"), { requestId: "find-me" })
      assert.notInclude(JSON.stringify(answer.body), "secret")
      assert.strictEqual(answer.headers.get("access-control-allow-origin"), "*")
    })
  )

  it.effect("answers invalid HTTP and too large headers in the usual error format", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp
      const garbage = yield* sendRaw(url, "\u0016\u0003\u0001 hello\r\n\r\n")
      assert.match(garbage, /^HTTP\/1\.1 400 /)
      assert.include(garbage, '"code":"invalid_request"')
      const large = yield* sendRaw(
        url,
        `GET /healthz HTTP/1.1\r\nHost: a\r\nX-Pad: ${"x".repeat(20_000)}\r\n\r\n`
      )
      assert.match(large, /^HTTP\/1\.1 431 /)
      assert.include(large, '"code":"payload_too_large"')
    })
  )

  it.effect("sends upgrades to the handler of their path, or to the router", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp
      const { onUpgrade } = yield* HttpServerHandle
      onUpgrade("/v1/taken", (taken, socket) => socket.end(`taken ${taken.url ?? ""}`))
      const upgrade = (path: string) =>
        sendRaw(
          url,
          `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n` +
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
      assert.strictEqual(yield* upgrade("/v1/taken?a=1"), "taken /v1/taken?a=1")
      assert.match(yield* upgrade("/v1/taken/more"), /^HTTP\/1\.1 404 [^]*"code":"not_found"/)
      assert.match(yield* upgrade("/healthz"), /^HTTP\/1\.1 200 /)
    })
  )

  it.effect("serves an API reference that loads no external resource", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp
      const { body, headers, status } = yield* request(`${url}/docs/api`)
      assert.strictEqual(status, 200)
      assert.include(headers.get("content-type") ?? "", "text/html")
      assert.notMatch(String(body).slice(0, 20_000), /<(?:script|link)[^>]+(?:src|href)=/)
      const openapi = yield* request(`${url}/openapi.json`)
      assert.strictEqual(at(openapi.body, "info", "title"), "Player backend")
    })
  )

  it.effect("serves the client and its source map to pages of every origin", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp
      const script = yield* request(`${url}/sdk/client.js`, {
        headers: { origin: "https://g.example" }
      })
      assert.strictEqual(script.headers.get("content-type"), "text/javascript; charset=utf-8")
      assert.strictEqual(script.headers.get("access-control-allow-origin"), "*")
      assert.strictEqual(script.headers.get("content-encoding"), "gzip")
      assert.match(String(script.body), /\/\/# sourceMappingURL=client\.js\.map$/)
      const map = yield* request(`${url}/sdk/client.js.map`)
      assert.include(at(map.body, "sources"), "src/client/client.ts")
      const etag = script.headers.get("etag") ?? ""
      const headers = { "if-none-match": `W/${etag}` }
      const again = yield* request(`${url}/sdk/client.js`, { headers })
      assert.deepStrictEqual([again.status, again.headers.get("etag")], [304, etag])
      const other = yield* request(`${url}/sdk/client.js.map`, { headers })
      assert.strictEqual(other.status, 200)
    })
  )

  it.effect("serves health, readiness and public keys without an API key", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp
      const health = yield* request(`${url}/healthz`)
      assert.deepStrictEqual(health.body, { status: "ok" })
      const ready = yield* request(`${url}/readyz`)
      assert.strictEqual(ready.status, 200)
      assert.deepInclude(ready.body, { ready: true, database: true, shards: true, draining: false })
      const keys = yield* request(`${url}/.well-known/jwks.json`)
      assert.strictEqual(keys.headers.get("cache-control"), "public, max-age=600")
      assert.sameMembers(Object.keys(Object(at(keys.body, "keys", 0))), [
        "kty",
        "crv",
        "x",
        "y",
        "kid",
        "alg",
        "use"
      ])
    })
  )
})
