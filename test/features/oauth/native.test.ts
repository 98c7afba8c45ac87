/**
 * Sign-in with the id token that Apple or Google gave to an app (spec section 4.1, decisions 3.2.7):
 * by whom it is signed, for whom, until when, with which nonce; and once.
 */
import { hash, randomUUID } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose"
import { SqlClient } from "effect/sql"
import type { NativeProvider } from "#rpc/oauth/sign-in"
import { at, guest } from "#testing/players"
import { codeOf } from "../../support/developer-requests.ts"
import { addressOfNode, configure, type Tenant } from "../../support/http/stack.ts"
import { ban, operate } from "../../support/moderation-calls.ts"
import {
  begin,
  call,
  enter,
  makeApp,
  newBrowser,
  outcomeOf,
  Providers,
  signIn,
  summaryOf,
  World
} from "../../support/oauth/oauth-harness.ts"

/** A nonce, what the app makes of it for the system, and an id token that has it. */
const makeToken = Effect.fnUntraced(function* (
  name: NativeProvider,
  sub: string,
  changes: JWTPayload = {},
  form: "hex" | "base64url" = "hex"
) {
  const { [name]: provider } = yield* Providers
  const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  const nonce = randomUUID()
  const claims: JWTPayload = {
    iss: provider.url,
    aud: provider.clientId,
    sub,
    nonce: hash("sha256", nonce, form),
    iat: now,
    exp: now + 300,
    ...changes
  }
  const idToken = yield* Effect.promise(() => provider.sign(claims))
  return { claims, nonce, idToken, platform: "ios" }
})

const joinDeadline = (app: Tenant, name: NativeProvider, body: object, accessToken?: string) =>
  call(app, `${name}/native`, body, accessToken)

const newGuest = (app: Tenant) =>
  Effect.flatMap(addressOfNode, (url) => guest({ url, ...app }, "Guest"))

layer(World(), { timeout: "60 seconds", excludeTestServices: true })("native sign-in", (it) => {
  it.effect("makes a player of a new person, and finds it again, by either form of the nonce", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      for (const name of ["apple", "google"] as const) {
        const first = yield* makeToken(name, "ada", { email: "ada@example.com" })
        const made = summaryOf(
          yield* joinDeadline(app, name, { ...first, name: "  Ada\nLovelace " })
        )
        assert.deepInclude(made, {
          status: 200,
          displayName: "Ada Lovelace",
          isGuest: false,
          provider: name,
          linked: false
        })
        const again = yield* makeToken(name, "ada", {}, "base64url")
        const found = summaryOf(yield* joinDeadline(app, name, { ...again, name: "Another" }))
        assert.deepInclude(found, { id: made.id, displayName: "Ada Lovelace" })
        // It is the same person as by the browser.
        assert.strictEqual(summaryOf(yield* signIn(app, name, "ada")).id, made.id)
      }
    })
  )

  it.effect("takes the tokens of the environment's native clients, and of no others", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const { google } = yield* Providers
      const token = (aud: string | Array<string>) => makeToken("google", "ada", { aud })
      const refused = yield* joinDeadline(app, "google", yield* token("android-client"))
      assert.deepStrictEqual([refused.status, codeOf(refused)], [400, "invalid_token"])
      yield* enter(app, "google", { ...google.credentials, nativeClientIds: ["android-client"] })
      assert.strictEqual(
        (yield* joinDeadline(app, "google", yield* token("android-client"))).status,
        200
      )
      const other = yield* joinDeadline(app, "google", yield* token("someone-elses-client"))
      assert.strictEqual(codeOf(other), "invalid_token")
    })
  )

  it.effect("refuses a token that is not the provider's, for us, now, with this nonce", () =>
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
        const answer = yield* joinDeadline(app, "google", { ...token, idToken })
        assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "invalid_token"], what)
      }
      const other = yield* joinDeadline(app, "google", { ...token, nonce: randomUUID() })
      assert.strictEqual(codeOf(other), "invalid_token")
      assert.strictEqual((yield* joinDeadline(app, "google", token)).status, 200)
    })
  )

  it.effect("takes a token once, however many present it at once", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const token = yield* makeToken("google", "replayed")
      const answers = yield* Effect.forEach(
        Array.from({ length: 16 }),
        () => joinDeadline(app, "google", token),
        { concurrency: 16 }
      )
      assert.lengthOf(
        answers.filter(({ status }) => status === 200),
        1
      )
      assert.strictEqual(codeOf(yield* joinDeadline(app, "google", token)), "invalid_token")
      const other = yield* makeApp
      assert.strictEqual((yield* joinDeadline(other, "google", token)).status, 200)
    })
  )

  it.effect("refuses the id token of a sign-in by the browser", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const { google } = yield* Providers
      yield* signIn(app, "google", "browsing")
      const idToken = google.issued.findLast((it) => it.split(".").length === 3) ?? ""
      const answer = yield* joinDeadline(app, "google", {
        idToken,
        nonce: "a-nonce-of-somebody",
        platform: "web"
      })
      assert.strictEqual(codeOf(answer), "invalid_token")
    })
  )

  it.effect("links to the player of the header, and only when asked to", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const { accessToken, id } = yield* newGuest(app)
      const link = { link: true }
      const nobody = yield* joinDeadline(app, "apple", {
        ...(yield* makeToken("apple", "l")),
        ...link
      })
      assert.deepStrictEqual([nobody.status, codeOf(nobody)], [401, "unauthorized"])
      const aside = yield* joinDeadline(
        app,
        "apple",
        yield* makeToken("apple", "aside"),
        accessToken
      )
      assert.notStrictEqual(summaryOf(aside).id, id)
      const token = yield* makeToken("apple", "linked")
      const linked = yield* joinDeadline(app, "apple", { ...token, ...link }, accessToken)
      assert.deepInclude(summaryOf(linked), { id, isGuest: false, provider: "apple", linked: true })
      const taken = { ...(yield* makeToken("apple", "aside")), ...link }
      const refused = yield* joinDeadline(app, "apple", taken, (yield* newGuest(app)).accessToken)
      assert.deepStrictEqual([refused.status, codeOf(refused)], [409, "identity_already_linked"])
      const second = { ...(yield* makeToken("apple", "second")), ...link }
      assert.strictEqual(
        codeOf(yield* joinDeadline(app, "apple", second, accessToken)),
        "identity_already_linked"
      )
    })
  )

  it.effect("refuses the banned, the disabled, the unconfigured and the unknown provider", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const url = yield* addressOfNode
      const made = yield* joinDeadline(app, "google", yield* makeToken("google", "bad"))
      yield* ban({ url, ...app }, String(summaryOf(made).id))
      const banned = yield* joinDeadline(app, "google", yield* makeToken("google", "bad"))
      assert.deepStrictEqual([banned.status, codeOf(banned)], [403, "player_banned"])
      const { production } = app
      const token = yield* makeToken("google", "ada")
      assert.strictEqual(
        codeOf(yield* joinDeadline(production, "google", token)),
        "provider_disabled"
      )
      yield* configure(production, { auth: { providers: { google: { enabled: true } } } })
      const bare = yield* joinDeadline(production, "google", token)
      assert.deepStrictEqual([bare.status, codeOf(bare)], [409, "provider_not_configured"])
      assert.strictEqual((yield* call(app, "discord/native", token)).status, 400)
      const short = yield* joinDeadline(app, "google", { ...token, nonce: "short" })
      assert.strictEqual(at(short.body, "error", "details", "issues", 0, "path"), "nonce")
    })
  )

  it.effect("keeps the permission of Apple's code for the day the player goes", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const sql = yield* SqlClient.SqlClient
      const url = yield* addressOfNode
      const { apple } = yield* Providers
      const token = yield* makeToken("apple", "leaving")
      const wrong = { ...token, authorizationCode: "made-up" }
      const made = summaryOf(yield* joinDeadline(app, "apple", wrong))
      assert.strictEqual(made.status, 200)
      const grants = sql<{ grantSealed: string | null }>`
        select grant_sealed from identities where player_id = ${made.id}`
      assert.deepStrictEqual(yield* grants, [{ grantSealed: null }])
      // A code as the system gives one to an app: of the same client, without a return address.
      const code = yield* nativeCode(app, "leaving")
      const right = { ...(yield* makeToken("apple", "leaving")), authorizationCode: code }
      assert.strictEqual(summaryOf(yield* joinDeadline(app, "apple", right)).id, made.id)
      const others = { ...(yield* makeToken("apple", "other")), authorizationCode: code }
      assert.strictEqual((yield* joinDeadline(app, "apple", others)).status, 200)
      assert.isString((yield* grants)[0]?.grantSealed)
      const before = apple.revoked.length
      yield* operate({ url, ...app }, "POST", `players/${String(made.id)}/delete`)
      assert.lengthOf(apple.revoked, before + 1)
    })
  )
})

/** A code that the provider has given and nobody has redeemed. */
const nativeCode = Effect.fnUntraced(function* (app: Tenant, account: string) {
  const browser = yield* newBrowser
  const { apple } = yield* Providers
  const url = new URL(yield* begin(app, "apple"))
  for (const name of ["code_challenge", "code_challenge_method"]) url.searchParams.delete(name)
  const seen = yield* browser.signIn(url.href, account, { isReturned: false })
  assert.isNull(outcomeOf(seen).code)
  const [, code = ""] = /name="code" value="([^"]*)"/.exec(seen.body) ?? []
  assert.isNotEmpty(code, apple.url)
  return code
})

layer(Layer.fresh(World({ SVC_OAUTH_GOOGLE_URL: "http://127.0.0.1:9" })), {
  timeout: "60 seconds",
  excludeTestServices: true
})("a provider that is away", (it) => {
  it.effect("makes native sign-in unavailable, not the token invalid", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const answer = yield* joinDeadline(app, "google", yield* makeToken("google", "ada"))
      assert.deepStrictEqual([answer.status, codeOf(answer)], [503, "unavailable"])
    })
  )
})
