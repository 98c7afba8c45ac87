/**
 * Unsafe deployments: pages of development behind a reverse proxy on the same machine, where every request
 * comes from loopback. The settings that refuse to start are in `platform/settings/settings.test.ts`.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at, request } from "#testing/players"
import { MetricsRoute } from "#server/telemetry/metrics"
import { sendRaw } from "../support/http/raw.ts"
import { addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"

const Node = nodeWith({}, MetricsRoute).pipe(Layer.provideMerge(SharedDatabase.layer))

/** Every page that exists in development only. */
const pages = ["/", "/dev/mail", "/metrics"]

/** Sends a GET with exactly these headers; returns the status of the response. */
const statusOf = (path: string, host: string, header = "", version = "1.1") =>
  Effect.gen(function* () {
    const url = yield* addressOfNode
    const lines = [`GET ${path} HTTP/${version}`, `Host: ${host}`, "Connection: close"]
    if (header !== "") lines.push(header)
    const response = yield* sendRaw(url, `${lines.join("\r\n")}\r\n\r\n`)
    return Number(/^HTTP\/1\.1 (\d+)/.exec(response)?.[1])
  })

const forwarded = [
  "X-Forwarded-For: 9.9.9.9",
  "X-Forwarded-For: 127.0.0.1",
  "X-Forwarded-For:",
  "X-Forwarded-Proto: https",
  "X-Forwarded-Host: localhost",
  "Forwarded: for=127.0.0.1",
  "X-Real-IP: 127.0.0.1",
  "Via: 1.1 proxy",
  "CF-Connecting-IP: 9.9.9.9",
  "True-Client-IP: 9.9.9.9",
  "Fly-Client-IP: 9.9.9.9",
  "X-Original-URL: /metrics",
  "X-Envoy-External-Address: 9.9.9.9"
]

layer(Node)("a development page", (it) => {
  it.effect("serves development pages to a browser and a program on this machine", () =>
    Effect.gen(function* () {
      for (const page of pages) {
        for (const host of ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "localhost"]) {
          assert.strictEqual(yield* statusOf(page, host), 200, `${page} at ${host}`)
        }
      }
    })
  )

  it.effect(
    "hides development pages under any name but localhost, also under that of the base URL",
    () =>
      Effect.gen(function* () {
        const names = [
          "play.example.com",
          "192.168.1.7:8080",
          "evil.example",
          "localhost.evil.example"
        ]
        for (const page of pages) {
          for (const host of names) {
            assert.strictEqual(yield* statusOf(page, host), 404, `${page} at ${host}`)
          }
        }
      })
  )

  it.effect("hides development pages behind a proxy, even one that claims the name localhost", () =>
    Effect.gen(function* () {
      for (const page of pages) {
        for (const header of forwarded) {
          assert.strictEqual(yield* statusOf(page, "localhost", header), 404, `${page}, ${header}`)
        }
        // The default of nginx.
        assert.strictEqual(yield* statusOf(page, "localhost:8080", "", "1.0"), 404, page)
      }
    })
  )

  it.effect("hides development pages from a script of another origin", () =>
    Effect.gen(function* () {
      for (const page of pages) {
        const status = yield* statusOf(page, "localhost", "Origin: http://localhost:3000")
        assert.strictEqual(status, 404, page)
      }
    })
  )
})

layer(Node)("the start page", (it) => {
  it.effect(
    "names the keys file on the start page with a link to the reference, and nothing from elsewhere",
    () =>
      Effect.gen(function* () {
        const { body, headers } = yield* request(`${yield* addressOfNode}/`)
        const html = String(body)
        assert.match(html, /<code>[^<]+\/dev-keys\.json<\/code>/)
        const links = [...html.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link]) => link)
        assert.match(links[0] ?? "", /^\/dashboard(?:#code=[\w-]{43})?$/)
        const documents = ["/openapi.json", "/asyncapi.json"]
        const others = ["/demo", "/docs", "/docs/api", "/dev/voice", ...documents, "/dev/mail"]
        assert.deepStrictEqual(links.slice(1), others)
        assert.include(headers.get("content-security-policy"), "default-src 'none'")
      })
  )
})

const Production = nodeWith({ NODE_ENV: "production" }).pipe(
  Layer.provideMerge(SharedDatabase.layer)
)

layer(Production)("in production", (it) => {
  it.effect("the mail page does not exist in production, and `/` leads to the dashboard", () =>
    Effect.gen(function* () {
      const { body, status } = yield* request(`${yield* addressOfNode}/dev/mail`)
      assert.deepStrictEqual([status, at(body, "error", "code")], [404, "not_found"])
      assert.strictEqual(yield* statusOf("/", "play.example.com"), 302)
    })
  )
})

const WithoutDashboard = nodeWith({ NODE_ENV: "production", SVC_DASHBOARD: "off" }).pipe(
  Layer.provideMerge(SharedDatabase.layer)
)

layer(WithoutDashboard)("in production without a dashboard", (it) => {
  it.effect("the start page does not exist in production without a dashboard", () =>
    Effect.gen(function* () {
      const { body, status } = yield* request(`${yield* addressOfNode}/`)
      assert.deepStrictEqual([status, at(body, "error", "code")], [404, "not_found"])
    })
  )
})
