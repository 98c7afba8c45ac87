/**
 * Attacks on browser sign-in: missing, swapped and reused states, codes and verifiers, forged id tokens,
 * foreign redirect URLs, and secrets in logs or responses.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { generateKeyPair, SignJWT, UnsecuredJWT } from "jose"
import { SqlClient } from "effect/sql"
import { at, guest, request } from "#testing/players"
import { codeOf } from "../../support/developer-requests.ts"
import { addressOfNode, type Tenant } from "../../support/http-stack.ts"
import {
  startFlow,
  call,
  challengeOf,
  completeFlow,
  putCredentials,
  exchange,
  Log,
  makeApp,
  newBrowser,
  outcomeOf,
  Providers,
  redirectUrl,
  signIn,
  summaryOf,
  verifier,
  OAuthNodeLive
} from "../../support/oauth/oauth-harness.ts"

/** Sends a callback with any query, without a provider. */
const callback = Effect.fnUntraced(function* (name: string, query: Record<string, string>) {
  const url = yield* addressOfNode
  const address = `${url}/v1/auth/oauth/${name}/callback?${new URLSearchParams(query)}`
  return yield* Effect.promise(async () => {
    const response = await fetch(address, { redirect: "manual" })
    const { headers, status } = response
    const csp = headers.get("content-security-policy") ?? ""
    return { status, csp, url: headers.get("location") ?? "", body: await response.text() }
  })
})

const stateOf = (url: string): string => new URL(url).searchParams.get("state") ?? ""

/** URLs that resemble the redirect URLs of the config. */
const foreignRedirectUrls = [
  "https://evil.example/signed-in",
  "https://game.example.evil.example/signed-in",
  "https://game.example@evil.example/signed-in",
  "https://game.example:443@evil.example/signed-in",
  "https://evil.example\\@game.example/signed-in",
  "https://game.example\\@evil.example/signed-in",
  "https://game.example/signed-in/../steal",
  "https://game.example/signed-in%2f..%2fsteal",
  "https://game.example//evil.example/signed-in",
  "https://game.example/signed-in#svc_code=mine",
  "https://game.example/signed-in/",
  "https://game.example/other",
  "https://GAME.example/signed-in",
  "https://game.example:8443/signed-in",
  "https://game.example./signed-in",
  "http://game.example/signed-in",
  "//game.example/signed-in",
  "/signed-in",
  "javascript:alert(1)//https://game.example/signed-in",
  "data:text/html,https://game.example/signed-in",
  "mygame://signed-in/steal",
  "https://game.example/signed-in\r\nset-cookie: a=b",
  " https://game.example/signed-in",
  "https://play.example.com.evil.example/",
  "http://play.example.com/",
  ""
]

const wrongChallenges = ["", "short", verifier, `${challengeOf(verifier)}=`, "+".repeat(43)]

type Claims = Parameters<NonNullable<Providers["Service"]["google"]["tamper"]>>[0]

layer(OAuthNodeLive(), { timeout: "120 seconds", excludeTestServices: true })(
  "attacks on browser sign-in",
  (it) => {
    it.effect("shows a page instead of redirecting for an unknown state", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const url = yield* startFlow(app, "google")
        const state = stateOf(url)
        for (const query of [
          {},
          { state: "", code: "x" },
          { state: "made-up", code: "x" },
          { state: `${state}x`, code: "x" },
          { code: "x", error: "access_denied" }
        ]) {
          const seen = yield* callback("google", query)
          assert.deepStrictEqual([seen.status, seen.url], [400, ""])
          assert.include(seen.body, "expired")
          assert.include(seen.csp, "default-src 'none'")
        }
      })
    )

    it.effect("accepts a state once, and only at its provider", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const state = stateOf(yield* startFlow(app, "google"))
        assert.strictEqual((yield* callback("discord", { state, code: "x" })).status, 400)
        const first = yield* callback("google", { state, error: "access_denied" })
        assert.strictEqual(first.url, `${redirectUrl}#svc_error=access_denied`)
        assert.strictEqual(
          (yield* callback("google", { state, error: "access_denied" })).status,
          400
        )
      })
    )

    it.effect("accepts one of several concurrent callbacks with the same state", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const state = stateOf(yield* startFlow(app, "x"))
        const seen = yield* Effect.forEach(
          Array.from({ length: 16 }),
          () => callback("x", { state, error: "access_denied" }),
          { concurrency: 16 }
        )
        assert.lengthOf(
          seen.filter(({ status }) => status === 302),
          1
        )
      })
    )

    it.effect("accepts a code once, under concurrent use, too", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { code } = yield* completeFlow(app, "google", "racer")
        const answers = yield* Effect.forEach(
          Array.from({ length: 32 }),
          () => exchange(app, code ?? ""),
          { concurrency: 32 }
        )
        assert.lengthOf(
          answers.filter(({ status }) => status === 200),
          1
        )
        for (const answer of answers) assert.include(["ok", "invalid_code"], codeOf(answer))
      })
    )

    it.effect("refuses a code with a wrong verifier, which spends the code", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { code } = yield* completeFlow(app, "google", "thief")
        const wrong = yield* exchange(app, code ?? "", `${verifier}x`)
        assert.deepStrictEqual([wrong.status, codeOf(wrong)], [400, "invalid_code"])
        assert.strictEqual(codeOf(yield* exchange(app, code ?? "")), "invalid_code")
        assert.strictEqual(codeOf(yield* exchange(app, "made-up")), "invalid_code")
        const short = yield* exchange(app, code ?? "", "short")
        assert.strictEqual(codeOf(short), "invalid_request")
      })
    )

    it.effect("refuses a code in another environment", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { code } = yield* completeFlow(app, "google", "here")
        assert.strictEqual(codeOf(yield* exchange(app.production, code ?? "")), "invalid_code")
        assert.strictEqual((yield* exchange(app, code ?? "")).status, 200)
      })
    )

    it.effect("creates one player for concurrent first sign-ins of one user", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const codes = yield* Effect.forEach(
          Array.from({ length: 4 }),
          () => completeFlow(app, "discord", "twin"),
          { concurrency: 4 }
        )
        const answers = yield* Effect.forEach(codes, ({ code }) => exchange(app, code ?? ""), {
          concurrency: 4
        })
        const players = answers.map((answer) => summaryOf(answer))
        for (const { status } of players) assert.strictEqual(status, 200)
        assert.lengthOf(new Set(players.map(({ id }) => id)), 1)
      })
    )

    it.effect("never links the identity of a lured victim", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const sql = yield* SqlClient.SqlClient
        const url = yield* addressOfNode
        const attacker = yield* guest({ url, ...app })
        const started = yield* startFlow(app, "google", attacker.accessToken)
        const victim = yield* newBrowser
        // The victim's browser has the code and the attacker the verifier: neither has both.
        const { code } = outcomeOf(yield* victim.signIn(started, "victim"))
        assert.strictEqual(codeOf(yield* exchange(app, code ?? "", "x".repeat(43))), "invalid_code")
        const rows = yield* sql`select 1 from identities where player_id = ${attacker.id}`
        assert.deepStrictEqual(rows, [])
      })
    )

    it.effect("refuses to link with a foreign token or another authorization scheme", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const url = yield* addressOfNode
        const stranger = yield* guest({ url, ...app.production })
        const body = { redirectUrl, challenge: challengeOf(verifier) }
        for (const token of [stranger.accessToken, "not.a.token", app.secretKey]) {
          assert.strictEqual(codeOf(yield* call(app, "google/start", body, token)), "unauthorized")
        }
        const basic = yield* request(`${url}/v1/auth/oauth/google/start`, {
          headers: { "x-svc-key": app.publishableKey, authorization: "Basic YTpi" },
          body
        })
        assert.strictEqual(codeOf(basic), "unauthorized")
      })
    )

    it.effect("refuses redirect URLs that the config does not list", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        for (const address of foreignRedirectUrls) {
          const body = { redirectUrl: address, challenge: challengeOf(verifier) }
          const answer = yield* call(app, "google/start", body)
          assert.strictEqual(answer.status, 400, address)
          const path = at(answer.body, "error", "details", "issues", 0, "path")
          assert.strictEqual(path, "redirectUrl", address)
        }
        const local = { redirectUrl: "http://localhost:3000/", challenge: challengeOf(verifier) }
        assert.strictEqual((yield* call(app, "google/start", local)).status, 200)
        for (const challenge of wrongChallenges) {
          const answer = yield* call(app, "google/start", { redirectUrl, challenge })
          assert.strictEqual(codeOf(answer), "invalid_request", challenge)
        }
      })
    )

    it.effect("refuses an id token with a wrong signer, audience, time or nonce", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { google } = yield* Providers
        const foreign = yield* Effect.promise(() => generateKeyPair("RS256"))
        const header = { alg: "RS256", kid: "provider-key" }
        const wrong: Record<string, (claims: Claims) => Promise<string>> = {
          nonce: (claims) => google.sign({ ...claims, nonce: "another" }),
          noNonce: ({ nonce: _, ...claims }) => google.sign(claims),
          audience: (claims) => google.sign({ ...claims, aud: "another-client" }),
          issuer: (claims) => google.sign({ ...claims, iss: "https://evil.example" }),
          expired: (claims) => google.sign({ ...claims, exp: Number(claims.iat) - 10 }),
          noSubject: ({ sub: _, ...claims }) => google.sign(claims),
          blankSubject: (claims) => google.sign({ ...claims, sub: "a b" }),
          unknownKey: (claims) => google.sign(claims, { kid: "another-key" }),
          foreignKey: (claims) =>
            new SignJWT(claims).setProtectedHeader(header).sign(foreign.privateKey),
          none: async (claims) => new UnsecuredJWT(claims).encode(),
          symmetric: (claims) =>
            new SignJWT(claims)
              .setProtectedHeader({ alg: "HS256" })
              .sign(Buffer.from("a-secret-that-only-two-know-at-all"))
        }
        for (const [what, tamper] of Object.entries(wrong)) {
          google.tamper = tamper
          const outcome = yield* completeFlow(app, "google", "forged")
          assert.deepStrictEqual(outcome, { code: null, error: "provider_error" }, what)
        }
        google.tamper = (claims) => google.sign(claims)
        assert.isString((yield* completeFlow(app, "google", "forged")).code)
        google.tamper = undefined
      })
    )

    it.effect("reports provider_error for a provider code of another flow", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        for (const name of ["google", "discord", "x"] as const) {
          const browser = yield* newBrowser
          const stolen = new URL(yield* startFlow(app, name))
          const own = yield* startFlow(app, name)
          // The attacker's flow returns with the code of the victim's flow: the verifiers differ.
          stolen.searchParams.set("state", stateOf(own))
          const outcome = outcomeOf(yield* browser.signIn(stolen.href, "victim"))
          assert.deepStrictEqual(outcome, { code: null, error: "provider_error" }, name)
        }
      })
    )

    it.effect("reports provider_error for a provider code that is missing, foreign or forged", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { google } = yield* Providers
        const queries: ReadonlyArray<Record<string, string>> = [
          { code: "made-up" },
          {},
          { error: "server_error" },
          { code: "x", iss: "https://evil.example" },
          { code: "x", iss: google.url }
        ]
        for (const query of queries) {
          const state = stateOf(yield* startFlow(app, "google"))
          const seen = yield* callback("google", { ...query, state })
          assert.strictEqual(seen.url, `${redirectUrl}#svc_error=provider_error`)
        }
      })
    )

    it.effect("reports provider_error when the user info endpoint or the credentials fail", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const lines = yield* Log
        const { x } = yield* Providers
        const refusals = [
          { status: 403, body: { reason: "client-not-enrolled", title: "Client Forbidden" } },
          { status: 500, body: {} },
          { status: 302, body: {} },
          { status: 200, body: { data: { id: 7 } } },
          { status: 200, body: { data: { id: "\u0000", name: "n", username: "u" } } },
          { status: 200, body: { data: "x".repeat(300_000) } }
        ]
        for (const refusal of refusals) {
          x.profileError = refusal
          const outcome = yield* completeFlow(app, "x", "silent")
          assert.deepStrictEqual(outcome, { code: null, error: "provider_error" })
        }
        x.profileError = undefined
        assert.isTrue(lines.some((line) => line.includes("client-not-enrolled")))
        const wrong = { clientId: "client-of-the-game", clientSecret: "not-the-secret" }
        yield* putCredentials(app, "x", wrong)
        const outcome = yield* completeFlow(app, "x", "silent")
        assert.deepStrictEqual(outcome, { code: null, error: "provider_error" })
      })
    )

    it.effect("writes no secret to the log, the audit log or, in plain text, the database", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const lines = yield* Log
        const providers = yield* Providers
        const seen = yield* secretsOfFlows(app)
        const given = Object.values(providers).flatMap(({ issued }) => issued)
        assert.isNotEmpty(given)
        const secrets = [...seen, ...given, "a-secret-that-only-two-know", "BEGIN PRIVATE KEY"]
        const log = lines.join("\n")
        assert.isNotEmpty(lines)
        const stored = yield* databaseText
        for (const secret of secrets.filter((it) => it !== "")) {
          assert.notInclude(log, secret)
          assert.notInclude(stored, secret)
        }
      })
    )
  }
)

/** Runs flows with every outcome and returns their secrets. */
const secretsOfFlows = Effect.fnUntraced(function* (app: Tenant) {
  const browser = yield* newBrowser
  const url = yield* startFlow(app, "apple")
  const { code } = outcomeOf(yield* browser.signIn(url, "secretive"))
  const left = outcomeOf(yield* browser.signIn(yield* startFlow(app, "google"), "secretive"))
  yield* callback("google", {
    state: stateOf(yield* startFlow(app, "google")),
    code: "made-up-code"
  })
  const session = yield* exchange(app, code ?? "")
  yield* signIn(app, "discord", "secretive")
  const challenge = new URL(url).searchParams.get("nonce") ?? ""
  const { body } = session
  const tokens = [at(body, "accessToken"), at(body, "refreshToken")].map(String)
  return [stateOf(url), code ?? "", left.code ?? "", "made-up-code", challenge, verifier, ...tokens]
})

/** All rows of the database as text. */
const databaseText = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ name: string }>`
    select table_name as name from information_schema.tables where table_schema = 'public'`
  const texts = yield* Effect.forEach(tables, ({ name }) => sql`select t::text from ${sql(name)} t`)
  return JSON.stringify(texts)
})
