/**
 * Browser sign-in from start to session, at a real OpenID provider that imitates each of the four
 * providers.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { at, guest, request } from "#testing/players"
import { codeOf } from "../../support/developer-requests.ts"
import { logout, unlink } from "../../support/devices.ts"
import { addressOfNode, configure, type Tenant } from "../../support/http-stack.ts"
import { ban, operate, play, refresh } from "../../support/moderation-calls.ts"
import {
  startFlow,
  call,
  challengeOf,
  completeFlow,
  exchange,
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

const accounts = [
  [
    "google",
    { name: "Ada Lovelace", email: "ada@example.com", emailVerified: true },
    "Ada Lovelace"
  ],
  ["apple", { email: "relay@example.com", emailVerified: true }, /^Player-/],
  ["discord", { name: "Ada", username: "ada42", email: "ada@example.com" }, "Ada"],
  ["x", { name: "Ada on X", username: "ada_x" }, "Ada on X"]
] as const

/** The target of raw requests to an environment. */
const targetOf = (app: Tenant) => Effect.map(addressOfNode, (url) => ({ url, ...app }))

const newGuest = (app: Tenant) => Effect.flatMap(targetOf(app), (target) => guest(target, "Guest"))

/** Starts a flow by a plain link. Does not follow the redirect. */
const startByLink = Effect.fnUntraced(function* (provider: string, query: Record<string, string>) {
  const url = yield* addressOfNode
  const address = `${url}/v1/auth/oauth/${provider}/start?${new URLSearchParams(query)}`
  return yield* Effect.promise(async () => {
    const response = await fetch(address, { redirect: "manual" })
    const { headers, status } = response
    const text = await response.text()
    const body: unknown = text === "" ? undefined : JSON.parse(text)
    return { status, body, location: headers.get("location") ?? "" }
  })
})

layer(OAuthNodeLive(), { timeout: "120 seconds", excludeTestServices: true })(
  "browser sign-in",
  (it) => {
    it.effect.each(accounts)("completes the flow with %s", ([name, account, shown]) =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const sql = yield* SqlClient.SqlClient
        const { [name]: provider } = yield* Providers
        provider.accounts.set("ada", account)
        const first = summaryOf(yield* signIn(app, name, "ada"))
        assert.deepInclude(first, { status: 200, isGuest: false, provider: name, linked: false })
        assert.strictEqual(first.methods, JSON.stringify([{ provider: name }]))
        if (typeof shown === "string") assert.strictEqual(first.displayName, shown)
        else assert.match(String(first.displayName), shown)
        const again = summaryOf(yield* signIn(app, name, "ada"))
        assert.strictEqual(again.id, first.id)
        const rows = yield* sql`
        select subject, email, email_verified, username, password_hash from identities
        where environment_id = ${app.environmentId}`
        assert.deepStrictEqual(rows, [
          {
            subject: "ada",
            email: "email" in account ? account.email : null,
            emailVerified: "emailVerified" in account,
            username: "username" in account ? account.username : null,
            passwordHash: null
          }
        ])
      })
    )

    it.effect("stores the name that Apple sends once, and revokes its token at the deletion", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const target = yield* targetOf(app)
        const sql = yield* SqlClient.SqlClient
        const { apple } = yield* Providers
        const user = JSON.stringify({ name: { firstName: "Grace", lastName: "Hopper" } })
        const first = summaryOf(yield* signIn(app, "apple", "grace", { form: { user } }))
        assert.strictEqual(first.displayName, "Grace Hopper")
        const [row] = yield* sql<{ sealed: string }>`
        select grant_sealed as sealed from identities where player_id = ${first.id}`
        const given = apple.issued.at(-1) ?? ""
        assert.isNotEmpty(row?.sealed)
        assert.notInclude(row?.sealed ?? "", given)
        const before = apple.revoked.length
        const deleted = yield* operate(target, "POST", `players/${String(first.id)}/delete`)
        assert.strictEqual(deleted.status, 200)
        assert.lengthOf(apple.revoked, before + 1)
        assert.include(apple.issued, apple.revoked.at(-1))
      })
    )

    it.effect("gives a player the name that Apple sent with sign-ins that were not completed", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const other = yield* makeApp
        const user = JSON.stringify({ name: { firstName: "Ada", lastName: "King" } })
        assert.isNotNull((yield* completeFlow(app, "apple", "ada", { form: { user } })).code)
        assert.isNotNull((yield* completeFlow(app, "apple", "ada")).code)
        assert.match(
          String(summaryOf(yield* signIn(other, "apple", "ada")).displayName),
          /^Player-/
        )
        const { displayName, id } = summaryOf(yield* signIn(app, "apple", "ada"))
        assert.strictEqual(displayName, "Ada King")
        const sql = yield* SqlClient.SqlClient
        yield* operate(yield* targetOf(app), "POST", `players/${String(id)}/delete`)
        // The completed sign-in has removed the name.
        assert.match(String(summaryOf(yield* signIn(app, "apple", "ada")).displayName), /^Player-/)
        const rows = yield* sql<{ sealed: string }>`
          select sealed from sign_in_steps where environment_id = ${app.environmentId}`
        for (const { sealed } of rows) assert.notInclude(sealed, "King")
      })
    )

    it.effect("deletes a player whose provider token cannot be revoked", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const target = yield* targetOf(app)
        const { id } = summaryOf(yield* signIn(app, "apple", "lost"))
        const headers = { "x-svc-key": app.secretKey }
        yield* request(`${target.url}/v1/admin/auth/providers/apple`, { method: "DELETE", headers })
        const deleted = yield* operate(target, "POST", `players/${String(id)}/delete`)
        assert.deepStrictEqual(deleted.body, { deleted: true })
      })
    )

    it.effect("shows the expired page to a player who was deleted during the flow", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const target = yield* targetOf(app)
        const gone = yield* guest(target)
        const url = yield* startFlow(app, "google", gone.accessToken)
        yield* operate(target, "POST", `players/${gone.id}/delete`)
        const state = new URL(url).searchParams.get("state") ?? ""
        const back = yield* request(
          `${target.url}/v1/auth/oauth/google/callback?state=${state}&code=x`
        )
        assert.strictEqual(back.status, 400)
      })
    )

    it.effect("redirects to the exact redirect URL with its query, and to app schemes", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const browser = yield* newBrowser
        for (const address of [
          `${redirectUrl}?level=3&x=%23`,
          "mygame://signed-in",
          "http://localhost:5173/play",
          "https://play.example.com/-/done"
        ]) {
          const body = { redirectUrl: address, challenge: challengeOf(verifier), mode: "redirect" }
          const { body: started } = yield* call(app, "google/start", body)
          const url = String(at(started, "url"))
          const seen = yield* browser.signIn(url, "ada")
          const [before, fragment] = seen.url.split("#")
          assert.strictEqual(before, address)
          // The test browser stops before the app, so the fragment is still in the URL.
          assert.match(fragment ?? "", /^svc_code=[\w-]{43}$/)
        }
      })
    )

    it.effect("starts from a plain link and redirects with the error where possible", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { google } = yield* Providers
        const query = { key: app.publishableKey, redirectUrl, challenge: challengeOf(verifier) }
        const started = yield* startByLink("google", query)
        assert.strictEqual(started.status, 302)
        assert.isTrue(started.location.startsWith(google.url))
        const browser = yield* newBrowser
        const { code } = outcomeOf(yield* browser.signIn(started.location, "ada"))
        assert.strictEqual((yield* exchange(app, code ?? "")).status, 200)

        const elsewhere = yield* startByLink("google", {
          ...query,
          redirectUrl: "https://evil.example/"
        })
        assert.deepStrictEqual([elsewhere.status, elsewhere.location], [400, ""])
        assert.strictEqual(
          at(elsewhere.body, "error", "details", "issues", 0, "path"),
          "query.redirectUrl"
        )
        for (const key of ["pk_unknown", app.secretKey]) {
          assert.strictEqual(codeOf(yield* startByLink("google", { ...query, key })), "invalid_key")
        }
        yield* configure(app.production, {
          auth: { redirectUrls: [redirectUrl], providers: { google: { enabled: true } } }
        })
        const production = { ...query, key: app.production.publishableKey }
        const bare = yield* startByLink("google", production)
        assert.strictEqual(bare.location, `${redirectUrl}#svc_error=provider_not_configured`)
        const off = yield* startByLink("x", production)
        assert.deepStrictEqual([off.status, codeOf(off)], [404, "provider_disabled"])
      })
    )

    it.effect("refuses a provider that is disabled or has no credentials", () =>
      Effect.gen(function* () {
        const { production } = yield* makeApp
        const body = { redirectUrl, challenge: challengeOf(verifier) }
        const off = yield* call(production, "x/start", body)
        assert.deepStrictEqual([off.status, codeOf(off)], [404, "provider_disabled"])
        yield* configure(production, {
          auth: { redirectUrls: [redirectUrl], providers: { x: { enabled: true } } }
        })
        const bare = yield* call(production, "x/start", body)
        assert.deepStrictEqual([bare.status, codeOf(bare)], [409, "provider_not_configured"])
      })
    )

    it.effect("refuses the code of a provider that has been disabled since the callback", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { code } = yield* completeFlow(app, "google", "late")
        yield* configure(app, {
          auth: { redirectUrls: [redirectUrl], providers: { google: { enabled: false } } }
        })
        const late = yield* exchange(app, code ?? "")
        assert.deepStrictEqual([late.status, codeOf(late)], [404, "provider_disabled"])
      })
    )

    it.effect("makes a guest permanent and keeps its id and data", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const target = yield* targetOf(app)
        const player = yield* newGuest(app)
        const { accessToken, id } = player
        const linked = yield* signIn(app, "discord", "guest-no-more", { accessToken })
        assert.deepInclude(summaryOf(linked), {
          status: 200,
          id,
          displayName: "Guest",
          isGuest: false,
          provider: "discord",
          linked: true
        })
        const me = yield* play(target, { accessToken }, "GET", "players/me")
        assert.strictEqual(at(me.body, "player", "isGuest"), false)
        assert.strictEqual(summaryOf(yield* signIn(app, "discord", "guest-no-more")).id, id)
        // Linking the same identity again succeeds.
        const again = summaryOf(yield* signIn(app, "discord", "guest-no-more", { accessToken }))
        assert.deepInclude(again, { id, linked: true })
      })
    )

    it.effect("refuses to link an identity of another player or a second one of a provider", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const owner = summaryOf(yield* signIn(app, "google", "owner"))
        const { accessToken, id } = yield* newGuest(app)
        const taken = yield* completeFlow(app, "google", "owner", { accessToken })
        assert.deepStrictEqual(taken, { code: null, error: "identity_already_linked" })
        yield* signIn(app, "google", "mine", { accessToken })
        const second = yield* completeFlow(app, "google", "mine-too", { accessToken })
        assert.deepStrictEqual(second, { code: null, error: "identity_already_linked" })
        assert.strictEqual(summaryOf(yield* signIn(app, "google", "owner")).id, owner.id)
        assert.strictEqual(summaryOf(yield* signIn(app, "google", "mine")).id, id)
        assert.notStrictEqual(summaryOf(yield* signIn(app, "google", "mine-too")).id, id)
      })
    )

    it.effect("never merges accounts by email", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const { discord, google } = yield* Providers
        const account = { email: "same@example.com", emailVerified: true }
        google.accounts.set("same-1", account)
        google.accounts.set("same-2", account)
        discord.accounts.set("same-1", account)
        const players = [
          yield* signIn(app, "google", "same-1"),
          yield* signIn(app, "google", "same-2"),
          yield* signIn(app, "discord", "same-1")
        ].map((answer) => summaryOf(answer).id)
        assert.lengthOf(new Set(players), 3)
      })
    )

    it.effect("creates a separate player in each environment", () =>
      Effect.gen(function* () {
        const one = yield* makeApp
        const other = yield* makeApp
        const first = summaryOf(yield* signIn(one, "x", "both"))
        assert.notStrictEqual(summaryOf(yield* signIn(other, "x", "both")).id, first.id)
      })
    )

    it.effect("refuses sign-in and linking for a banned player", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const target = yield* targetOf(app)
        const { id } = summaryOf(yield* signIn(app, "google", "bad"))
        const { code } = yield* completeFlow(app, "google", "bad")
        yield* ban(target, String(id))
        const late = yield* exchange(app, code ?? "")
        assert.deepStrictEqual([late.status, codeOf(late)], [403, "player_banned"])
        assert.isString(at(late.body, "error", "details", "sanctionId"))
        const back = yield* completeFlow(app, "google", "bad")
        assert.deepStrictEqual(back, { code: null, error: "player_banned" })

        const { accessToken, id: guestId } = yield* newGuest(app)
        const { code: linking } = yield* completeFlow(app, "google", "innocent", { accessToken })
        yield* ban(target, guestId)
        assert.strictEqual(codeOf(yield* exchange(app, linking ?? "")), "player_banned")
        const body = { redirectUrl, challenge: challengeOf(verifier) }
        const refused = yield* call(app, "google/start", body, accessToken)
        assert.strictEqual(codeOf(refused), "player_banned")
      })
    )

    it.effect("refuses to link once the session that started the flow is revoked", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const target = yield* targetOf(app)
        const sql = yield* SqlClient.SqlClient
        const { accessToken, id, refreshToken } = yield* newGuest(app)
        const { code: early } = yield* completeFlow(app, "google", "thief", { accessToken })
        yield* logout(target, { accessToken, id, refreshToken })
        const { code: late } = yield* completeFlow(app, "google", "thief", { accessToken })
        for (const code of [early, late]) {
          const answer = yield* exchange(app, code ?? "")
          assert.deepStrictEqual([answer.status, codeOf(answer)], [401, "session_revoked"])
        }
        assert.deepStrictEqual(yield* sql`select 1 from identities where player_id = ${id}`, [])
      })
    )

    it.effect(
      "revokes the session of a sign-in that races with an unlink, or creates another player",
      () =>
        Effect.gen(function* () {
          const app = yield* makeApp
          const target = yield* targetOf(app)
          for (let round = 0; round < 4; round++) {
            const { accessToken, id, refreshToken } = yield* newGuest(app)
            for (const name of ["google", "x"] as const) {
              yield* signIn(app, name, `${name}-${round}`, { accessToken })
            }
            const codes = yield* Effect.forEach(
              Array.from({ length: 4 }),
              () => completeFlow(app, "google", `google-${round}`),
              { concurrency: 4 }
            )
            const [unlinked, ...answers] = yield* Effect.all(
              [
                unlink(target, { accessToken }, "google", refreshToken),
                ...codes.map(({ code }) => exchange(app, code ?? ""))
              ],
              { concurrency: "unbounded" }
            )
            assert.strictEqual(unlinked.status, 200)
            for (const answer of answers) {
              assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
              const { body } = yield* refresh(target, String(at(answer.body, "refreshToken")))
              assert.strictEqual(
                at(body, "error", "code"),
                summaryOf(answer).id === id ? "session_revoked" : undefined
              )
            }
          }
        }),
      { tags: "long" }
    )

    it.effect("reports access_denied when the user declines", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        for (const name of ["google", "apple", "discord", "x"] as const) {
          const browser = yield* newBrowser
          const url = yield* startFlow(app, name)
          const seen = yield* browser.signIn(url, "ada", { answer: "no" })
          assert.deepStrictEqual(outcomeOf(seen), { code: null, error: "access_denied" })
        }
      })
    )
  }
)
