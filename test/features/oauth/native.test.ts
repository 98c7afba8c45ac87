/**
 * Native sign-in with an id token from the Apple or Google SDK: checks of signer, audience, time, nonce
 * and reuse.
 */
import { randomUUID } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { generateKeyPair, SignJWT, UnsecuredJWT } from "jose"
import { SqlClient } from "effect/sql"
import type { NativeProvider } from "#rpc/oauth/sign-in"
import { at, guest } from "#testing/players"
import { codeOf } from "../../support/developer-requests.ts"
import { addressOfNode, configure, type Tenant } from "../../support/http-stack.ts"
import { ban, operate } from "../../support/moderation-calls.ts"
import {
  startFlow,
  call,
  putCredentials,
  makeApp,
  makeToken,
  newBrowser,
  outcomeOf,
  Providers,
  signIn,
  summaryOf,
  OAuthNodeLive
} from "../../support/oauth/oauth-harness.ts"

const signInNatively = (app: Tenant, name: NativeProvider, body: object, accessToken?: string) =>
  call(app, `${name}/native`, body, accessToken)

const newGuest = (app: Tenant) =>
  Effect.flatMap(addressOfNode, (url) => guest({ url, ...app }, "Guest"))

layer(OAuthNodeLive(), { timeout: "120 seconds", excludeTestServices: true })(
  "native sign-in",
  (it) => {
    it.effect(
      "creates a player at the first sign-in and finds it again, with either nonce encoding",
      () =>
        Effect.gen(function* () {
          const app = yield* makeApp
          for (const name of ["apple", "google"] as const) {
            const first = yield* makeToken(name, "ada", { email: "ada@example.com" })
            const made = summaryOf(
              yield* signInNatively(app, name, { ...first, name: "  Ada\nLovelace " })
            )
            assert.deepInclude(made, {
              status: 200,
              displayName: "Ada Lovelace",
              isGuest: false,
              provider: name,
              linked: false
            })
            const again = yield* makeToken(name, "ada", {}, "base64url")
            const found = summaryOf(yield* signInNatively(app, name, { ...again, name: "Another" }))
            assert.deepInclude(found, { id: made.id, displayName: "Ada Lovelace" })
            // Browser sign-in finds the same player.
            assert.strictEqual(summaryOf(yield* signIn(app, name, "ada")).id, made.id)
          }
        })
    )

    it.effect("accepts tokens of the environment's native clients and of no others", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { google } = yield* Providers
        const token = (aud: string | Array<string>) => makeToken("google", "ada", { aud })
        const refused = yield* signInNatively(app, "google", yield* token("android-client"))
        assert.deepStrictEqual([refused.status, codeOf(refused)], [400, "invalid_token"])
        yield* putCredentials(app, "google", {
          ...google.credentials,
          nativeClientIds: ["android-client"]
        })
        assert.strictEqual(
          (yield* signInNatively(app, "google", yield* token("android-client"))).status,
          200
        )
        const other = yield* signInNatively(app, "google", yield* token("someone-elses-client"))
        assert.strictEqual(codeOf(other), "invalid_token")
      })
    )

    it.effect("refuses a token with a wrong signer, audience, time or nonce", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { apple, google } = yield* Providers
        const token = yield* makeToken("google", "forged")
        const { claims } = token
        const foreign = yield* Effect.promise(() => generateKeyPair("RS256"))
        const { nonce: _, ...bare } = claims
        const past = Number(claims.iat) - 10
        const signed = {
          issuer: google.sign({ ...claims, iss: apple.url }),
          issuerForm: google.sign({ ...claims, iss: `${google.url}/` }),
          audience: google.sign({ ...claims, aud: "" }),
          expired: google.sign({ ...claims, exp: past }),
          endless: google.sign(
            Object.fromEntries(Object.entries(claims).filter(([it]) => it !== "exp"))
          ),
          notYet: google.sign({ ...claims, nbf: Number(claims.exp) }),
          noNonce: google.sign(bare),
          rawNonce: google.sign({ ...claims, nonce: token.nonce }),
          noSubject: google.sign({ ...claims, sub: "" }),
          unknownKey: google.sign(claims, { kid: "another-key" }),
          otherProvider: apple.sign(claims),
          foreignKey: new SignJWT(claims)
            .setProtectedHeader({ alg: "RS256", kid: "provider-key" })
            .sign(foreign.privateKey),
          none: Promise.resolve(new UnsecuredJWT(claims).encode()),
          symmetric: new SignJWT(claims)
            .setProtectedHeader({ alg: "HS256" })
            .sign(Buffer.from("a-secret-that-only-two-know-at-all")),
          unsigned: Promise.resolve(token.idToken.split(".").slice(0, 2).join(".") + "."),
          garbled: Promise.resolve("not a token"),
          empty: Promise.resolve("")
        }
        for (const [what, promise] of Object.entries(signed)) {
          const idToken = yield* Effect.promise(() => promise)
          const answer = yield* signInNatively(app, "google", { ...token, idToken })
          assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "invalid_token"], what)
        }
        const other = yield* signInNatively(app, "google", { ...token, nonce: randomUUID() })
        assert.strictEqual(codeOf(other), "invalid_token")
        assert.strictEqual((yield* signInNatively(app, "google", token)).status, 200)
      })
    )

    it.effect("accepts a token once, under concurrent use, too", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const token = yield* makeToken("google", "replayed")
        const answers = yield* Effect.forEach(
          Array.from({ length: 16 }),
          () => signInNatively(app, "google", token),
          { concurrency: 16 }
        )
        assert.lengthOf(
          answers.filter(({ status }) => status === 200),
          1
        )
        assert.strictEqual(codeOf(yield* signInNatively(app, "google", token)), "invalid_token")
        const other = yield* makeApp
        assert.strictEqual((yield* signInNatively(other, "google", token)).status, 200)
      })
    )

    it.effect("refuses the id token of a browser sign-in", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { google } = yield* Providers
        yield* signIn(app, "google", "browsing")
        const idToken = google.issued.findLast((it) => it.split(".").length === 3) ?? ""
        const answer = yield* signInNatively(app, "google", {
          idToken,
          nonce: "a-nonce-of-somebody",
          platform: "web"
        })
        assert.strictEqual(codeOf(answer), "invalid_token")
      })
    )

    it.effect("links to the player of the authorization header, and only on request", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { accessToken, id } = yield* newGuest(app)
        const link = { link: true }
        const nobody = yield* signInNatively(app, "apple", {
          ...(yield* makeToken("apple", "l")),
          ...link
        })
        assert.deepStrictEqual([nobody.status, codeOf(nobody)], [401, "unauthorized"])
        const aside = yield* signInNatively(
          app,
          "apple",
          yield* makeToken("apple", "aside"),
          accessToken
        )
        assert.notStrictEqual(summaryOf(aside).id, id)
        const token = yield* makeToken("apple", "linked")
        const linked = yield* signInNatively(app, "apple", { ...token, ...link }, accessToken)
        assert.deepInclude(summaryOf(linked), {
          id,
          isGuest: false,
          provider: "apple",
          linked: true
        })
        const taken = { ...(yield* makeToken("apple", "aside")), ...link }
        const refused = yield* signInNatively(
          app,
          "apple",
          taken,
          (yield* newGuest(app)).accessToken
        )
        assert.deepStrictEqual([refused.status, codeOf(refused)], [409, "identity_already_linked"])
        const second = { ...(yield* makeToken("apple", "second")), ...link }
        assert.strictEqual(
          codeOf(yield* signInNatively(app, "apple", second, accessToken)),
          "identity_already_linked"
        )
      })
    )

    it.effect("refuses banned players and disabled, unconfigured or unknown providers", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const url = yield* addressOfNode
        const made = yield* signInNatively(app, "google", yield* makeToken("google", "bad"))
        yield* ban({ url, ...app }, String(summaryOf(made).id))
        const banned = yield* signInNatively(app, "google", yield* makeToken("google", "bad"))
        assert.deepStrictEqual([banned.status, codeOf(banned)], [403, "player_banned"])
        const { production } = app
        const token = yield* makeToken("google", "ada")
        assert.strictEqual(
          codeOf(yield* signInNatively(production, "google", token)),
          "provider_disabled"
        )
        yield* configure(production, { auth: { providers: { google: { enabled: true } } } })
        const bare = yield* signInNatively(production, "google", token)
        assert.deepStrictEqual([bare.status, codeOf(bare)], [409, "provider_not_configured"])
        assert.strictEqual((yield* call(app, "discord/native", token)).status, 400)
        const short = yield* signInNatively(app, "google", { ...token, nonce: "short" })
        assert.strictEqual(at(short.body, "error", "details", "issues", 0, "path"), "nonce")
      })
    )

    it.effect("stores the token of Apple's authorization code and revokes it at the deletion", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const sql = yield* SqlClient.SqlClient
        const url = yield* addressOfNode
        const { apple } = yield* Providers
        const token = yield* makeToken("apple", "leaving")
        const wrong = { ...token, authorizationCode: "made-up" }
        const made = summaryOf(yield* signInNatively(app, "apple", wrong))
        assert.strictEqual(made.status, 200)
        const grants = sql<{ grantSealed: string | null }>`
        select grant_sealed from identities where player_id = ${made.id}`
        assert.deepStrictEqual(yield* grants, [{ grantSealed: null }])
        // A code as the SDK returns it: for the same client, without a redirect URL.
        const code = yield* nativeCode(app, "leaving")
        const right = { ...(yield* makeToken("apple", "leaving")), authorizationCode: code }
        assert.strictEqual(summaryOf(yield* signInNatively(app, "apple", right)).id, made.id)
        const others = { ...(yield* makeToken("apple", "other")), authorizationCode: code }
        assert.strictEqual((yield* signInNatively(app, "apple", others)).status, 200)
        assert.isString((yield* grants)[0]?.grantSealed)
        const before = apple.revoked.length
        yield* operate({ url, ...app }, "POST", `players/${String(made.id)}/delete`)
        assert.lengthOf(apple.revoked, before + 1)
      })
    )
  }
)

/** An unused authorization code of the provider, issued without PKCE. */
const nativeCode = Effect.fnUntraced(function* (app: Tenant, account: string) {
  const browser = yield* newBrowser
  const { apple } = yield* Providers
  const url = new URL(yield* startFlow(app, "apple"))
  for (const name of ["code_challenge", "code_challenge_method"]) url.searchParams.delete(name)
  const seen = yield* browser.signIn(url.href, account, { isReturned: false })
  assert.isNull(outcomeOf(seen).code)
  const [, code = ""] = /name="code" value="([^"]*)"/.exec(seen.body) ?? []
  assert.isNotEmpty(code, apple.url)
  return code
})

layer(Layer.fresh(OAuthNodeLive({}, { google: "http://127.0.0.1:9" })), {
  timeout: "120 seconds",
  excludeTestServices: true
})("an unreachable provider", (it) => {
  it.effect(
    "answers 503 to a native sign-in while the provider is unreachable, and calls no token invalid",
    () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const answer = yield* signInNatively(app, "google", yield* makeToken("google", "ada"))
        assert.deepStrictEqual([answer.status, codeOf(answer)], [503, "unavailable"])
      })
  )
})
