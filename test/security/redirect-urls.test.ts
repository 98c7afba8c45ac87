/**
 * Open redirects (ASVS 10): every endpoint that takes a redirect URL refuses URLs that only resemble those
 * of `auth.redirectUrls`.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, guest, request } from "#testing/players"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"

const entries = [
  "https://app.com/signed-in",
  "https://app.com/game/*",
  "https://root.example",
  "myapp://signed-in"
]

const allowed = [
  "https://app.com/signed-in",
  "https://app.com/signed-in?from=mail",
  "https://app.com/game/",
  "https://app.com/game/level/1?x=%2F",
  "https://root.example/",
  "myapp://signed-in"
]

const hostile = [
  "",
  "*",
  "null",
  "/signed-in",
  "//app.com/signed-in",
  "///app.com/signed-in",
  "\\\\app.com\\signed-in",
  "app.com/signed-in",
  "https:app.com/signed-in",
  "https:/app.com/signed-in",
  "https:///app.com/signed-in",
  "https:\\\\app.com\\signed-in",
  "HTTPS://app.com/signed-in",
  "https://APP.com/signed-in",
  "https://app.com:443/signed-in",
  "https://app.com:8443/signed-in",
  "https://app.com:/signed-in",
  "http://app.com/signed-in",
  "https://app.com./signed-in",
  "https://www.app.com/signed-in",
  "https://app.com.evil/signed-in",
  "https://evilapp.com/signed-in",
  "https://app.co/signed-in",
  "https://app.com@evil.example/signed-in",
  "https://app.com:x@evil.example/signed-in",
  "https://app.com%40evil.example/signed-in",
  "https://app.com%2eevil.example/signed-in",
  "https://evil.example\\@app.com/signed-in",
  "https://app.com\\.evil.example/signed-in",
  "https://app.com\\@evil.example/signed-in",
  "https://user@app.com/signed-in",
  "https://user:pw@app.com/signed-in",
  "https://@app.com/signed-in",
  "https://evil.example/https://app.com/signed-in",
  "https://evil.example/?https://app.com/signed-in",
  "https://evil.example#https://app.com/signed-in",
  "https://evil.example;https://app.com/signed-in",
  "https://app.com",
  "https://app.com/",
  "https://app.com/signed-i",
  "https://app.com/signed-in/",
  "https://app.com/signed-inn",
  "https://app.com/signed-in/more",
  "https://app.com/Signed-In",
  "https://app.com/signed%2din",
  "https://app.com/./signed-in",
  "https://app.com/x/../signed-in",
  "https://app.com//signed-in",
  "https://app.com/game",
  "https://app.com/games/",
  "https://app.com/GAME/x",
  "https://app.com/game/..",
  "https://app.com/game/../steal",
  "https://app.com/game/./x",
  "https://app.com/game/%2e%2e/steal",
  "https://app.com/game/%2E%2E/steal",
  "https://app.com/game/.%2e/steal",
  "https://app.com/game/..%2fsteal",
  "https://app.com/game/%2f..%2fsteal",
  "https://app.com/game/..%5csteal",
  "https://app.com/game/..\\steal",
  "https://app.com/game/%252e%252e/steal",
  "https://app.com/game%2fx",
  "https://app.com/game/%00",
  "https://app.com/game/x\u0000y",
  "https://app.com/signed-in#",
  "https://app.com/signed-in#svc_code=mine",
  "https://app.com/game/x#y",
  "https://app.com/signed-in?x#y",
  "https://app.com/signed-in\r\nset-cookie: a=b",
  "https://app.com/signed-in?x=\r\nlocation:y",
  "https://app.com/signed-in\n",
  " https://app.com/signed-in",
  "https://app.com/signed-in ",
  "https://app\t.com/signed-in",
  "https://ap\u200bp.com/signed-in",
  "https://\u0430pp.com/signed-in",
  "https://\uff41pp.com/signed-in",
  "https://app\u3002com/signed-in",
  "https://root.example/more",
  "https://root.example.evil/",
  "javascript:alert(1)",
  "javascript://app.com/signed-in",
  "JaVaScRiPt://app.com/%0aalert(1)",
  "data:text/html,https://app.com/signed-in",
  "vbscript:x",
  "file:///signed-in",
  "blob:https://app.com/signed-in",
  "myapp:signed-in",
  "myapp://signed-in/",
  "myapp://signed-in.evil",
  "myapp://SIGNED-IN",
  "yourapp://signed-in",
  "http://localhost/",
  "http://localhost:3000/",
  "http://127.0.0.1/"
]

const concurrently = { concurrency: 8 } as const

const challenge = "A".repeat(43)
const password = "correct horse battery"

layer(SecurityAppLive(), live)("redirect URLs (ASVS 10)", (it) => {
  it.effect(
    "every endpoint refuses foreign redirect URLs and accepts those of the config",
    () =>
      Effect.gen(function* () {
        const { production: app } = yield* TestApp
        assert.isAtLeast(new Set(hostile).size, 80)
        yield* configure(app, {
          version: 1,
          features: { emailLogin: true },
          auth: { redirectUrls: entries, providers: { google: { enabled: true } } }
        })
        yield* request(`${app.url}/v1/admin/auth/providers/google`, {
          method: "PUT",
          headers: { "x-svc-key": app.secretKey },
          body: { clientId: "client", clientSecret: "secret" }
        })
        const { accessToken } = yield* guest(app)
        const key = { "x-svc-key": app.publishableKey }
        const own = { ...key, authorization: `Bearer ${accessToken}` }
        const email = "nobody@example.com"
        const requests = [
          { path: "oauth/google/start", headers: key, body: { challenge } },
          { path: "email/signup", headers: key, body: { email, password } },
          { path: "password/forgot", headers: key, body: { email } },
          { path: "email/resend", headers: own, body: {} },
          { path: "link/email", headers: own, body: { email, password } }
        ]
        for (const { body, headers, path } of requests) {
          const ask = (redirectUrl: string) =>
            Effect.map(
              request(`${app.url}/v1/auth/${path}`, { headers, body: { ...body, redirectUrl } }),
              (answer) => ({
                status: answer.status,
                path: at(answer.body, "error", "details", "issues", 0, "path")
              })
            )
          const refused = yield* Effect.forEach(hostile, ask, concurrently)
          for (const [index, answer] of refused.entries()) {
            assert.deepStrictEqual(answer, { status: 400, path: "redirectUrl" }, hostile[index])
          }
          const accepted = yield* Effect.forEach(allowed, ask, concurrently)
          for (const answer of accepted) assert.notStrictEqual(answer.path, "redirectUrl", path)
        }
      }),
    { timeout: 60_000, tags: "long" }
  )

  it.effect("a plain link never redirects to a foreign URL", () =>
    Effect.gen(function* () {
      const { production: app } = yield* TestApp
      for (const redirectUrl of hostile) {
        const query = new URLSearchParams({ key: app.publishableKey, redirectUrl, challenge })
        const location = yield* Effect.promise(async () => {
          const url = `${app.url}/v1/auth/oauth/google/start?${query}`
          const { headers, status } = await fetch(url, { redirect: "manual" })
          return status < 400 ? headers.get("location") : null
        })
        assert.isNull(location, redirectUrl)
      }
    })
  )
})
