/**
 * Origin checks (ASVS 3): HTTP and sockets refuse every `Origin` that the config does not allow, however
 * much it resembles an allowed one.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { WebSocket } from "ws"
import { TestApp } from "#testing/app"
import { at, configure, guest, request } from "#testing/players"
import { connectSocket } from "#testing/socket-client"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"

const allowed = [
  "https://a.com",
  "https://play.games.example",
  "https://a.b.games.example",
  "https://a.port.example:8443",
  "https://xn--bcher-kva.example",
  "capacitor://localhost",
  // Browsers never send these two forms, but they are the same origin.
  "HTTPS://A.COM",
  "https://a.com:443"
]

const entries = [
  "https://a.com",
  "https://*.games.example",
  "https://*.port.example:8443",
  "https://xn--bcher-kva.example",
  "capacitor://localhost"
]

const hostile = [
  "null",
  "NULL",
  "*",
  "undefined",
  "file://",
  "https://",
  "https://*",
  "http://a.com",
  "ws://a.com",
  "wss://a.com",
  "https://a.com:80",
  "https://a.com:8443",
  "http://a.com:443",
  "https://a.com:0443",
  "https://a.com:",
  "https://a.com:99999",
  "https://a.com.",
  "https://a.com.evil",
  "https://a.com.evil.example",
  "https://a.comevil.example",
  "https://evila.com",
  "https://evil-a.com",
  "https://www.a.com",
  "https://a.co",
  "https://a.com/",
  "https://a.com/x",
  "https://a.com?",
  "https://a.com?x",
  "https://a.com#",
  "https://a.com#x",
  "https://@a.com",
  "https://user@a.com",
  "https://user:pw@a.com",
  "https://a.com@evil.example",
  "https://a.com:443@evil.example",
  "https://evil.example@a.com",
  "https://a.com\\@evil.example",
  "https://evil.example\\.a.com",
  "https:a.com",
  "https:/a.com",
  "https:///a.com",
  "https:\\\\a.com",
  "//a.com",
  "a.com",
  "https://a.com, https://evil.example",
  "https://evil.example, https://a.com",
  "https://a.com https://evil.example",
  "https://games.example",
  "https://.games.example",
  "https://*.games.example",
  "https://evilgames.example",
  "https://-games.example",
  "https://play.games.example.",
  "https://play.games.example.evil",
  "https://play.games.example:8443",
  "http://play.games.example",
  "https://a..games.example",
  "https://play.games.examples",
  "https://port.example:8443",
  "https://a.port.example",
  "https://a.port.example:443",
  "https://b\u00fccher.example",
  "https://xn--bcher-kva.example.evil",
  "https://xn--xample-9uf.com",
  "https://%61.com",
  "https://a%2ecom",
  "capacitor://localhost:80",
  "capacitor://localhost.evil",
  "ionic://localhost",
  "http://localhost",
  "http://localhost:3000",
  "http://127.0.0.1:8080",
  "https://[::1]",
  "data:text/html,x",
  "javascript:alert(1)",
  "blob:https://a.com/0f0f",
  "chrome-extension://abcdefghijklmnop"
]

const setUp = Effect.gen(function* () {
  const app = yield* TestApp
  const player = yield* guest(app.production)
  yield* configure(app.production, {
    version: 1,
    features: { multiplayer: true, saves: true },
    web: { allowedOrigins: entries }
  })
  const key = { "x-svc-key": app.production.publishableKey }
  const own = { ...key, authorization: `Bearer ${player.accessToken}` }
  const connect = (origin: string) =>
    Effect.scoped(
      Effect.gen(function* () {
        const socket = yield* connectSocket(app.socketUrl, { origin })
        const { publishableKey } = app.production
        yield* socket.send({ t: "auth", key: publishableKey, token: player.accessToken })
        return yield* Effect.raceFirst(
          Effect.map(socket.next("welcome"), () => "welcome"),
          Effect.map(socket.closed, ({ code, reason }) => `${code} ${reason}`)
        )
      })
    )
  /** Calls `events` over /v1/rpc from one origin, with another origin in the headers of the call. */
  const callAs = (origin: string, claimed: string) =>
    Effect.callback<string>((resume) => {
      const socket = new WebSocket(`${app.url.replace("http", "ws")}/v1/rpc`, { origin })
      const headers = Object.entries({ ...own, origin: claimed })
      const ask = { _tag: "Request", id: "1", tag: "events", payload: null, headers }
      socket.on("open", () => socket.send(JSON.stringify(ask)))
      socket.on("message", (data) => resume(Effect.succeed(String(data))))
      return Effect.sync(() => socket.terminate())
    })
  return { app, callAs, connect, key, own }
})

layer(SecurityAppLive(), live)("origins (ASVS 3 and 4.4)", (it) => {
  it.effect(
    "HTTP refuses origins that resemble an allowed one with a 403 that the page can read",
    () =>
      Effect.gen(function* () {
        const { app, key, own } = yield* setUp
        assert.isAtLeast(new Set(hostile).size, 60)
        const secret = { "x-svc-key": app.production.secretKey }
        const requests = [
          { path: "/v1/players/me", headers: own },
          { path: "/v1/gamedata/definitions", headers: key },
          { path: "/v1/config", headers: secret }
        ]
        for (const { headers, path } of requests) {
          const ask = (origin: string) =>
            request(`${app.url}${path}`, { headers: { ...headers, origin } })
          const refused = yield* Effect.forEach(hostile, ask, { concurrency: 8 })
          for (const [index, answer] of refused.entries()) {
            const outcome = [answer.status, at(answer.body, "error", "code")]
            assert.deepStrictEqual(
              outcome,
              [403, "origin_not_allowed"],
              `${path} ${hostile[index]}`
            )
            assert.strictEqual(answer.headers.get("access-control-allow-origin"), "*")
            assert.isNull(answer.headers.get("access-control-allow-credentials"))
          }
          for (const origin of allowed) {
            const answer = yield* ask(origin)
            assert.strictEqual(answer.status, 200, `${path} ${origin}`)
            assert.isNull(answer.headers.get("access-control-allow-credentials"))
          }
        }
      }),
    60_000
  )

  it.effect("the JSON socket closes with 4003 for origins that resemble an allowed one", () =>
    Effect.gen(function* () {
      const { connect } = yield* setUp
      const refused = yield* Effect.forEach(hostile, connect, { concurrency: 4 })
      for (const [index, outcome] of refused.entries()) {
        assert.strictEqual(outcome, "4003 origin_not_allowed", hostile[index])
      }
      // One at a time: they are of one player, and each connection replaces the one before it.
      for (const origin of allowed) assert.strictEqual(yield* connect(origin), "welcome", origin)
    })
  )

  it.effect(
    "the RPC socket checks the origin of its upgrade, not one in the headers of a call",
    () =>
      Effect.gen(function* () {
        const { callAs } = yield* setUp
        assert.include(yield* callAs("https://evil.example", "https://a.com"), "origin_not_allowed")
        assert.include(yield* callAs("https://a.com", "https://evil.example"), "welcome")
      })
  )

  it.effect("a cacheable response varies by key and origin, and a refusal is not cacheable", () =>
    Effect.gen(function* () {
      const { app, key } = yield* setUp
      const answer = yield* request(`${app.url}/v1/gamedata/definitions`, {
        headers: { ...key, origin: "https://a.com" }
      })
      assert.include(answer.headers.get("cache-control"), "max-age")
      const vary = (answer.headers.get("vary") ?? "").toLowerCase().split(/, */)
      assert.includeMembers(vary, ["origin", "x-svc-key"])
      const refused = yield* request(`${app.url}/v1/gamedata/definitions`, {
        headers: { ...key, origin: "https://evil.example" }
      })
      assert.strictEqual(refused.headers.get("cache-control"), "no-store")
    })
  )
})
