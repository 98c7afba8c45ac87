/** Developers' sign-in with Google and GitHub: accounts, links, renewed proofs. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { at, request, type TestResponse } from "#testing/players"
import { addressOfNode } from "../../support/http-stack.ts"
import { makeInvite } from "../../support/invites.ts"
import {
  ask,
  completeFlow,
  DeveloperNodeLive,
  DeveloperProviders,
  exchange,
  signIn,
  start
} from "../../support/oauth/developer-harness.ts"
import { codeOf } from "../../support/bodies.ts"

const tokenOf = ({ body }: TestResponse) => at(body, "token")
const idOf = ({ body }: TestResponse) => at(body, "developer", "id")
const providersOf = (answer: TestResponse) =>
  Array.from(Object(at(answer.body, "identities")), (each) => at(each, "provider"))

const password = "correct horse"
const signup = (email: string) => ask("POST", "/signup", { body: { email, password } })
const identitiesOf = (token: unknown) =>
  Effect.map(ask("GET", "/me/identities", { token }), providersOf)

/** Adds an account at Google. */
const atGoogle = (id: string, email = `${id}@example.com`, emailVerified = true) =>
  Effect.map(DeveloperProviders, ({ google }) => {
    google.accounts.set(id, { name: `${id} of Google`, email, emailVerified })
    return id
  })

/** Signs a user in at GitHub, with an address that is not the primary one before the one that is. */
const atGithub = (id: number, email: string, verified = true) =>
  Effect.map(DeveloperProviders, ({ github }) => {
    const other = { email: `other-${email}`, primary: false, verified: true }
    const emails = [other, { email, primary: true, verified }]
    github.user = { id, login: `user-${id}`, name: null, emails }
  })

layer(DeveloperNodeLive())("developers' sign-in with a provider", (it) => {
  it.effect("lists the providers whose client the operator has set", () =>
    Effect.gen(function* () {
      const { body } = yield* request(`${yield* addressOfNode}/v1/platform/info`)
      assert.deepStrictEqual(at(body, "oauthProviders"), ["google", "github"])
    })
  )

  it.effect("creates an account at the first sign-in and finds it at the next one", () =>
    Effect.gen(function* () {
      const account = yield* atGoogle("ada", "Ada@Example.com")
      const first = yield* signIn("google", account)
      assert.strictEqual(first.status, 200, JSON.stringify(first.body))
      assert.strictEqual(at(first.body, "intent"), "login")
      assert.strictEqual(at(first.body, "developer", "email"), "ada@example.com")
      assert.strictEqual(at(first.body, "developer", "name"), "ada of Google")
      assert.isFalse(at(first.body, "developer", "hasPassword"))
      assert.strictEqual(codeOf(yield* ask("GET", "/me", { token: tokenOf(first) })), "ok")
      const second = yield* signIn("google", account)
      assert.strictEqual(idOf(second), idOf(first))
      assert.notStrictEqual(tokenOf(second), tokenOf(first))
      assert.isUndefined(at(second.body, "invite"))
    })
  )

  it.effect("signs in with GitHub by its user id, and takes the primary address", () =>
    Effect.gen(function* () {
      yield* atGithub(42, "grace@example.com")
      const first = yield* signIn("github", "")
      assert.strictEqual(at(first.body, "developer", "email"), "grace@example.com")
      assert.strictEqual(at(first.body, "developer", "name"), "user-42")
      yield* atGithub(42, "renamed@example.com")
      const second = yield* signIn("github", "")
      assert.strictEqual(idOf(second), idOf(first))
      assert.strictEqual(at(second.body, "developer", "email"), "grace@example.com")
      const listed = yield* ask("GET", "/me/identities", { token: tokenOf(second) })
      assert.strictEqual(at(listed.body, "identities", 0, "email"), "renamed@example.com")
      assert.strictEqual(at(listed.body, "identities", 0, "username"), "user-42")
    })
  )

  it.effect("creates one account for concurrent first sign-ins of one identity", () =>
    Effect.gen(function* () {
      const account = yield* atGoogle("twice")
      const answers = yield* Effect.all(
        [signIn("google", account), signIn("google", account), signIn("google", account)],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(answers.map(codeOf), ["ok", "ok", "ok"])
      assert.strictEqual(new Set(answers.map(idOf)).size, 1)
    })
  )

  it.effect("never signs in to, or links, an account by its email address alone", () =>
    Effect.gen(function* () {
      const token = tokenOf(yield* signup("victim@example.com"))
      const refused = yield* signIn("google", yield* atGoogle("thief", "victim@example.com"))
      assert.deepStrictEqual([refused.status, codeOf(refused)], [409, "email_taken"])
      assert.deepStrictEqual(yield* identitiesOf(token), [])
    })
  )

  it.effect("creates no account from an address that the provider has not verified", () =>
    Effect.gen(function* () {
      yield* atGithub(7, "unverified@example.com", false)
      for (const refused of [
        yield* signIn("github", ""),
        yield* signIn("google", yield* atGoogle("plain", "unverified@example.com", false))
      ]) {
        assert.strictEqual(codeOf(refused), "invalid_request")
        assert.include(JSON.stringify(refused.body), "verified email")
      }
      assert.strictEqual(codeOf(yield* signup("unverified@example.com")), "ok")
    })
  )

  it.effect("redeems a code once, within a minute, and with the verifier of the page", () =>
    Effect.gen(function* () {
      const account = yield* atGoogle("codes")
      const wrong = yield* completeFlow("google", account)
      const verifier = "another-verifier-that-is-long-enough-for-all"
      assert.strictEqual(codeOf(yield* exchange(wrong.code, { verifier })), "invalid_code")
      assert.strictEqual(codeOf(yield* exchange(wrong.code)), "invalid_code")
      const { code } = yield* completeFlow("google", account)
      const both = yield* Effect.all([exchange(code), exchange(code)], { concurrency: 2 })
      assert.sameMembers(both.map(codeOf), ["ok", "invalid_code"])
      const late = yield* completeFlow("google", account)
      yield* TestClock.adjust("61 seconds")
      assert.strictEqual(codeOf(yield* exchange(late.code)), "invalid_code")
    })
  )

  it.effect("returns only to the service's own host or to the developer's machine", () =>
    Effect.gen(function* () {
      for (const redirectUrl of [
        "https://play.example.com/dashboard/",
        "https://play.example.com:8443/",
        "http://localhost:3999/callback",
        "http://127.0.0.1:1/"
      ]) {
        assert.strictEqual(codeOf(yield* start("google", {}, { redirectUrl })), "ok", redirectUrl)
      }
      for (const redirectUrl of [
        "https://evil.example/dashboard",
        "https://play.example.com.evil.example/",
        "https://app.play.example.com/",
        "http://play.example.com/",
        "https://user@play.example.com/",
        "javascript:alert(1)",
        "/dashboard"
      ]) {
        const refused = yield* start("google", {}, { redirectUrl })
        assert.strictEqual(codeOf(refused), "invalid_request", redirectUrl)
      }
    })
  )

  it.effect("passes on to the dashboard why a developer's sign-in failed at the provider", () =>
    Effect.gen(function* () {
      const { github } = yield* DeveloperProviders
      yield* atGithub(9, "nine@example.com")
      github.declines = true
      assert.strictEqual((yield* completeFlow("github", "")).error, "access_denied")
      github.declines = false
      for (const path of ["/login/oauth/access_token", "/user", "/user/emails"]) {
        github.broken.add(path)
        assert.strictEqual((yield* completeFlow("github", "")).error, "provider_error", path)
        github.broken.delete(path)
      }
      assert.isNotNull((yield* completeFlow("github", "")).code)
    })
  )

  it.effect("answers a forged, used or swapped state with a page, and redirects nowhere", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const started = yield* start("google")
      const state = new URL(String(at(started.body, "url"))).searchParams.get("state") ?? ""
      for (const path of [
        "google/callback",
        "google/callback?state=x",
        `github/callback?state=${state}`
      ]) {
        const answer = yield* Effect.promise(() =>
          fetch(`${url}/v1/developers/oauth/${path}`, { redirect: "manual" })
        )
        assert.strictEqual(answer.status, 400, path)
      }
    })
  )
})

layer(DeveloperNodeLive())("a developer's external identities", (it) => {
  it.effect("links a provider to the developer of the session, which then signs in", () =>
    Effect.gen(function* () {
      const mine = yield* signup("mine@example.com")
      const token = tokenOf(mine)
      const account = yield* atGoogle("mine", "elsewhere@example.com")
      const linked = yield* signIn("google", account, { intent: "link", token })
      assert.strictEqual(at(linked.body, "intent"), "link")
      assert.deepStrictEqual(providersOf(linked), ["google"])
      assert.isUndefined(tokenOf(linked))
      assert.strictEqual(idOf(yield* signIn("google", account)), idOf(mine))
      const again = yield* signIn("google", account, { intent: "link", token })
      assert.deepStrictEqual(providersOf(again), ["google"])
    })
  )

  it.effect("refuses an identity of another developer, and a second one of a provider", () =>
    Effect.gen(function* () {
      const theirs = yield* atGoogle("theirs")
      yield* signIn("google", theirs)
      const token = tokenOf(yield* signup("second@example.com"))
      const outcome = yield* completeFlow("google", theirs, { intent: "link", token })
      assert.strictEqual(outcome.error, "identity_already_linked")
      yield* signIn("google", yield* atGoogle("own"), { intent: "link", token })
      const another = yield* signIn("google", yield* atGoogle("own-2"), { intent: "link", token })
      assert.deepStrictEqual([another.status, codeOf(another)], [409, "identity_already_linked"])
      assert.deepStrictEqual(yield* identitiesOf(token), ["google"])
    })
  )

  it.effect("requires a developer session for a link or a proof, and ends both with it", () =>
    Effect.gen(function* () {
      for (const intent of ["link", "reauth"]) {
        const refused = yield* start("google", { intent })
        assert.strictEqual(codeOf(refused), "unauthorized")
        assert.include(at(refused.body, "error", "message"), "developer session")
        assert.strictEqual(
          codeOf(yield* start("google", { intent, token: "kds_none" })),
          "unauthorized"
        )
      }
      assert.strictEqual(codeOf(yield* start("google", { token: "kds_none" })), "ok")
      const account = yield* atGoogle("leaver")
      const links = tokenOf(yield* signup("leaver@example.org"))
      const link = yield* completeFlow("google", account, { intent: "link", token: links })
      yield* ask("POST", "/logout", { token: links })
      assert.strictEqual(codeOf(yield* exchange(link.code)), "invalid_code")
      const proves = tokenOf(yield* signIn("google", account))
      const unproven = yield* completeFlow("google", account, { intent: "reauth", token: proves })
      const proof = yield* signIn("google", account, { intent: "reauth", token: proves })
      yield* ask("POST", "/logout", { token: proves })
      assert.isNotNull(unproven.code)
      assert.strictEqual(codeOf(yield* exchange(unproven.code)), "invalid_code")
      const reauthToken = at(proof.body, "reauthToken")
      assert.isString(reauthToken)
      const token = tokenOf(yield* signIn("google", account))
      const body = { reauthToken, newPassword: password }
      const refused = yield* ask("POST", "/me/password", { token, body })
      assert.strictEqual(codeOf(refused), "invalid_credentials")
    })
  )

  it.effect("accepts a renewed sign-in as proof once, for five minutes, in its session", () =>
    Effect.gen(function* () {
      const account = yield* atGoogle("prover")
      const token = tokenOf(yield* signIn("google", account))
      const proofOf = Effect.map(signIn("google", account, { intent: "reauth", token }), (it) =>
        at(it.body, "reauthToken")
      )
      const setPassword = (reauthToken: unknown, own: unknown = token) =>
        Effect.map(
          ask("POST", "/me/password", { token: own, body: { reauthToken, newPassword: password } }),
          codeOf
        )
      const other = tokenOf(yield* signIn("google", account))
      const proof = yield* proofOf
      assert.isString(proof)
      assert.strictEqual(yield* setPassword(proof, other), "invalid_credentials")
      assert.strictEqual(yield* setPassword("x"), "invalid_credentials")
      assert.strictEqual(yield* setPassword(proof), "ok")
      assert.strictEqual(yield* setPassword(proof), "invalid_credentials")
      assert.strictEqual(codeOf(yield* ask("GET", "/me", { token: other })), "unauthorized")
      const late = yield* proofOf
      yield* TestClock.adjust("301 seconds")
      assert.strictEqual(yield* setPassword(late), "invalid_credentials")
    })
  )

  it.effect("gives no proof for an identity that is not the developer's own", () =>
    Effect.gen(function* () {
      const token = tokenOf(yield* signIn("google", yield* atGoogle("owner")))
      const stranger = yield* atGoogle("stranger")
      const refused = yield* signIn("google", stranger, { intent: "reauth", token })
      assert.deepStrictEqual([refused.status, codeOf(refused)], [401, "invalid_credentials"])
    })
  )

  it.effect("keeps the last sign-in method, also of concurrent removals, and spends no proof", () =>
    Effect.gen(function* () {
      const account = yield* atGoogle("last")
      const token = tokenOf(yield* signIn("google", account))
      yield* atGithub(77, "seventy@example.com")
      yield* signIn("github", "", { intent: "link", token })
      const proofOf = Effect.map(signIn("google", account, { intent: "reauth", token }), (it) =>
        at(it.body, "reauthToken")
      )
      const [one, two] = [yield* proofOf, yield* proofOf]
      const remove = (provider: string, reauthToken: unknown) =>
        ask("DELETE", `/me/identities/${provider}`, { token, body: { reauthToken } })
      const both = yield* Effect.all([remove("google", one), remove("github", two)], {
        concurrency: 2
      })
      assert.sameMembers(both.map(codeOf), ["ok", "last_login_method"])
      const [left] = yield* identitiesOf(token)
      const unspent = codeOf(both[0]) === "ok" ? two : one
      assert.strictEqual(codeOf(yield* remove(String(left), unspent)), "last_login_method")
      const sql = yield* SqlClient.SqlClient
      assert.notInclude(JSON.stringify(yield* sql`select * from developer_flows`), String(unspent))
    })
  )
})

const inviteCode = "invite-code-1"

layer(DeveloperNodeLive({ SVC_SIGNUPS: "invite" }))(
  "developers' sign-in with a provider, by invitation",
  (it) => {
    it.effect(
      "requires an invite code at the first sign-in with a provider, and ignores one later",
      () =>
        Effect.gen(function* () {
          yield* makeInvite(inviteCode)
          const account = yield* atGoogle("guest")
          assert.strictEqual(codeOf(yield* signIn("google", account)), "invalid_invite_code")
          const wrong = yield* signIn("google", account, { inviteCode: "invite-code-2" })
          assert.strictEqual(codeOf(wrong), "invalid_invite_code")
          const first = yield* signIn("google", account, { inviteCode })
          const credit = { credited: 500, currency: "usd", pending: false }
          assert.deepStrictEqual(at(first.body, "invite"), credit)
          assert.strictEqual(codeOf(yield* signIn("google", account)), "ok")
          const again = yield* signIn("google", account, { inviteCode: "anything" })
          assert.deepStrictEqual(at(again.body, "invite"), { ignored: true })
          const next = yield* signIn("google", yield* atGoogle("next"), { inviteCode })
          assert.strictEqual(codeOf(next), "invite_code_used")
        })
    )
  }
)

layer(
  DeveloperNodeLive({
    NODE_ENV: "production",
    SVC_SIGNUPS: "closed",
    SVC_SETUP_TOKEN: "a token of the operator"
  })
)("the first developer in production, with a provider", (it) => {
  it.effect(
    "requires the setup token when the first developer in production signs in with a provider",
    () =>
      Effect.gen(function* () {
        const account = yield* atGoogle("operator")
        assert.strictEqual(codeOf(yield* signIn("google", account)), "signups_closed")
        const setupToken = "a token of the operator"
        assert.strictEqual(codeOf(yield* signIn("google", account, { setupToken })), "ok")
        const closed = yield* signIn("google", yield* atGoogle("late"))
        assert.strictEqual(codeOf(closed), "signups_closed")
      })
  )
})

layer(
  DeveloperNodeLive({ SVC_DEVELOPER_GITHUB_CLIENT_ID: "", SVC_DEVELOPER_GITHUB_CLIENT_SECRET: "" })
)("a provider without a client", (it) => {
  it.effect("neither lists nor accepts a sign-in provider whose client is not set", () =>
    Effect.gen(function* () {
      const refused = yield* start("github")
      assert.deepStrictEqual([refused.status, codeOf(refused)], [409, "provider_not_configured"])
      const { body } = yield* request(`${yield* addressOfNode}/v1/platform/info`)
      assert.deepStrictEqual(at(body, "oauthProviders"), ["google"])
    })
  )
})
