/** OAuth flows on the test clock: expiry of each step, throttles, and decoding of profiles. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { oauthThrottles } from "#rpc/oauth/limits"
import { displayNameOf, nameOfAppleUser, profileFromClaims } from "#server/features/oauth/profiles"
import { codeOf } from "../../support/developer-requests.ts"
import {
  startFlow,
  call,
  challengeOf,
  completeFlow,
  exchange,
  makeApp,
  newBrowser,
  outcomeOf,
  redirectUrl,
  verifier,
  OAuthNodeLive
} from "../../support/oauth/oauth-harness.ts"

layer(OAuthNodeLive(), { timeout: "120 seconds" })("expiry of an OAuth flow", (it) => {
  it.effect("allows ten minutes for a sign-in at the provider", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const browser = yield* newBrowser
      const inTime = yield* startFlow(app, "discord")
      yield* TestClock.adjust("599 seconds")
      assert.isString(outcomeOf(yield* browser.signIn(inTime, "slow")).code)
      const late = yield* startFlow(app, "discord")
      yield* TestClock.adjust("600 seconds")
      const outcome = outcomeOf(yield* browser.signIn(late, "slow"))
      assert.deepStrictEqual(outcome, { code: null, error: "expired" })
    })
  )

  it.effect("expires an OAuth code after one minute", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const { code: first } = yield* completeFlow(app, "discord", "quick")
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual((yield* exchange(app, first ?? "")).status, 200)
      const { code: second } = yield* completeFlow(app, "discord", "quick")
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual(codeOf(yield* exchange(app, second ?? "")), "invalid_code")
    })
  )

  it.effect("deletes an unfinished flow and creates no player", () =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const sql = yield* SqlClient.SqlClient
      const { environmentId } = app
      yield* startFlow(app, "x")
      yield* completeFlow(app, "x", "shy")
      const flows = sql`select 1 from sign_in_steps where environment_id = ${environmentId}`
      assert.lengthOf(yield* flows, 2)
      const swept = Effect.andThen(TestClock.adjust("1 hour"), flows)
      yield* Effect.repeat(swept, { until: (rows) => rows.length === 0 })
      const players = yield* sql`select 1 from players where environment_id = ${environmentId}`
      assert.deepStrictEqual(players, [])
    })
  )
})

layer(OAuthNodeLive({ SVC_THROTTLES: "on" }), { timeout: "120 seconds" })(
  "throttles of an OAuth flow",
  (it) => {
    it.effect(
      "limits starts, code exchanges and native sign-ins per address",
      () =>
        Effect.gen(function* () {
          const app = yield* makeApp
          const native = { idToken: "x", nonce: "a-nonce-of-somebody", platform: "ios" }
          const calls = [
            ["google/start", { redirectUrl, challenge: challengeOf(verifier) }, "startPerAddress"],
            ["exchange", { code: "made-up", verifier }, "exchangePerAddress"],
            ["google/native", native, "nativePerAddress"]
          ] as const
          for (const [path, body, name] of calls) {
            for (let n = 0; n < oauthThrottles[name].burst; n += 1) {
              assert.notStrictEqual(
                codeOf(yield* call(app, path, body)),
                "rate_limited",
                `${path} ${n}`
              )
            }
            const refused = yield* call(app, path, body)
            assert.deepStrictEqual([refused.status, codeOf(refused)], [429, "rate_limited"])
            assert.isNotNull(refused.headers.get("retry-after"))
          }
        }),
      { tags: "long" }
    )
  }
)

describe("provider profiles", () => {
  it("reads a valid display name from a provider profile, or none", () => {
    const cases = [
      [null, undefined],
      ["", undefined],
      [" \u0000\n ", undefined],
      ["  Ada  ", "Ada"],
      ["Ada\u0007Lovelace", "Ada Lovelace"],
      ["e\u0301", "\u00e9"],
      ["x".repeat(40), "x".repeat(32)],
      ["\u{1f600}".repeat(40), "\u{1f600}".repeat(32)],
      [`${"x".repeat(31)} y`, "x".repeat(31)]
    ] as const
    for (const [name, shown] of cases) assert.strictEqual(displayNameOf(name), shown)
  })

  it("joins the parts of the name that Apple sends, if any", () => {
    const users = [
      [`{"name":{"firstName":"Ada","lastName":"Lovelace"}}`, "Ada Lovelace"],
      [`{"name":{"firstName":"Ada","lastName":null}}`, "Ada"],
      [`{"name":{}}`, ""],
      [`{"email":"a@example.com"}`, undefined],
      [`{"name":"Ada"}`, undefined],
      ["not json", undefined],
      [undefined, undefined]
    ] as const
    for (const [user, name] of users) assert.strictEqual(nameOfAppleUser(user), name)
  })

  it.effect("keeps the email address of the provider if it is valid", () =>
    Effect.gen(function* () {
      const of = (claims: Record<string, unknown>) => profileFromClaims({ sub: "1", ...claims })
      const plain = yield* of({ email: "a@example.com", email_verified: "true" })
      assert.deepInclude(plain, { email: "a@example.com", emailVerified: true })
      for (const email of ["", "a\u0000@example.com", `${"x".repeat(300)}@example.com`, 7, null]) {
        const profile = yield* of({ email, email_verified: true })
        assert.deepInclude(profile, { email: null, emailVerified: false })
      }
      const unclear = yield* of({ email: "a@example.com", email_verified: "yes" })
      assert.strictEqual(unclear.emailVerified, false)
    })
  )
})
