/** Developer accounts: sign-up, sign-in, passwords and rate limits. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { at, request, type TestResponse } from "#testing/players"
import { makeInvite } from "../../support/invites.ts"
import { addressOfNode, makeDeveloper, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { codeOf } from "../../support/bodies.ts"

const on = (env: Readonly<Record<string, string>>) =>
  nodeWith(env).pipe(Layer.provideMerge(SharedDatabase.layer))

const password = "correct horse"

const codes = ["first-code-1", "second-code-2"] as const

const ask = (method: string, path: string, options: { body?: unknown; token?: unknown } = {}) =>
  Effect.flatMap(addressOfNode, (url) =>
    request(`${url}${path}`, {
      method,
      ...(options.body === undefined ? {} : { body: options.body }),
      ...(options.token === undefined
        ? {}
        : { headers: { authorization: `Bearer ${String(options.token)}` } })
    })
  )

const signup = (body: unknown) => ask("POST", "/v1/developers/signup", { body })
const login = (email: string, word = password) =>
  ask("POST", "/v1/developers/login", { body: { email, password: word } })
const me = (token: unknown) => ask("GET", "/v1/developers/me", { token })
const tokenOf = ({ body }: TestResponse) => at(body, "token")

const signups = Effect.map(ask("GET", "/v1/platform/info"), ({ body }) => at(body, "signups"))

layer(on({}))("a fresh service", (it) => {
  it.effect("accepts exactly one of several concurrent first sign-ups, and then none", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* signups, "open")
      const answers = yield* Effect.forEach(
        ["a@example.com", "b@example.com", "c@example.com"],
        (email) => signup({ email, password }),
        { concurrency: "unbounded" }
      )
      assert.sameMembers(answers.map(codeOf), ["ok", "signups_closed", "signups_closed"])
      const sql = yield* SqlClient.SqlClient
      assert.lengthOf(yield* sql`select id from developers`, 1)
      assert.strictEqual(
        codeOf(yield* signup({ email: "d@example.com", password })),
        "signups_closed"
      )
      assert.strictEqual(yield* signups, "closed")
    })
  )
})

layer(on({ SVC_SIGNUPS: "open" }))("developers", (it) => {
  it.effect("signs a developer up with a token that identifies the account", () =>
    Effect.gen(function* () {
      const answer = yield* signup({ email: " Ada@Example.COM ", password, name: " Ada " })
      const { developer } = Object(answer.body)
      assert.strictEqual(answer.status, 200)
      assert.match(String(tokenOf(answer)), /^kds_[\w-]{43}$/)
      assert.strictEqual(at(answer.body, "expiresAt"), "1970-01-31T00:00:00.000Z")
      assert.match(String(at(developer, "id")), /^dev_/)
      assert.strictEqual(at(developer, "email"), "ada@example.com")
      assert.strictEqual(at(developer, "name"), "Ada")
      assert.isTrue(at(developer, "hasPassword"))
      assert.deepStrictEqual((yield* me(tokenOf(answer))).body, { developer })
      const again = yield* signup({ email: "ADA@example.com", password })
      assert.strictEqual(codeOf(again), "email_taken")
    })
  )

  it.effect("rejects invalid input with the path of the field", () =>
    Effect.gen(function* () {
      const email = "bad@example.com"
      for (const [body, path] of [
        [{ email: "nobody", password }, "email"],
        [{ email: `${"a".repeat(251)}@a.b`, password }, "email"],
        [{ email: "a b@example.com", password }, "email"],
        [{ email: "", password }, "email"],
        [{ email, password: "short77" }, "password"],
        [{ email, password: "a".repeat(257) }, "password"],
        [{ email, password: 12345678 }, "password"],
        [{ email, password, name: " " }, "name"],
        [{ email, password, name: "a".repeat(81) }, "name"],
        [{ email, password, name: "a\u0000b" }, "name"]
      ] as const) {
        const answer = yield* signup(body)
        assert.strictEqual(codeOf(answer), "invalid_request", JSON.stringify(body))
        assert.strictEqual(at(answer.body, "error", "details", "issues", 0, "path"), path)
      }
      assert.strictEqual(codeOf(yield* login(email)), "invalid_credentials")
    })
  )

  it.effect("stores only hashes of the password and the token", () =>
    Effect.gen(function* () {
      const token = tokenOf(yield* signup({ email: "hash@example.com", password }))
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql`select * from developers d join developer_sessions s
        on s.developer_id = d.id where d.email = 'hash@example.com'`
      const text = JSON.stringify(rows)
      assert.include(text, "$argon2id$v=19$m=19456,t=2,p=1$")
      assert.notInclude(text, password)
      assert.notInclude(text, String(token).slice(4))
    })
  )

  it.effect("does not reveal through a failed sign-in whether an account exists", () =>
    Effect.gen(function* () {
      yield* signup({ email: "known@example.com", password })
      const external = yield* makeDeveloper
      const wrong = yield* login("known@example.com", "wrong horse")
      const unknown = yield* login("unknown@example.com", password)
      const without = yield* login(external.email, password)
      for (const answer of [wrong, unknown, without]) {
        assert.strictEqual(answer.status, 401)
        assert.deepStrictEqual(answer.body, wrong.body)
      }
      assert.strictEqual(codeOf(wrong), "invalid_credentials")
      assert.strictEqual(codeOf(yield* login("KNOWN@example.com")), "ok")
    })
  )

  it.effect("ends only the current session at sign-out", () =>
    Effect.gen(function* () {
      const one = tokenOf(yield* signup({ email: "two@example.com", password }))
      const two = tokenOf(yield* login("two@example.com"))
      const out = yield* ask("POST", "/v1/developers/logout", { token: one })
      assert.deepStrictEqual(out.body, {})
      assert.strictEqual(codeOf(yield* me(one)), "unauthorized")
      assert.strictEqual(codeOf(yield* me(two)), "ok")
    })
  )

  it.effect("requires the old password for a new one and ends the other sessions", () =>
    Effect.gen(function* () {
      const email = "change@example.com"
      const here = tokenOf(yield* signup({ email, password }))
      const there = tokenOf(yield* login(email))
      const change = (body: unknown) =>
        Effect.map(ask("POST", "/v1/developers/me/password", { token: here, body }), codeOf)
      const newPassword = "battery staple"
      assert.strictEqual(yield* change({ newPassword }), "invalid_credentials")
      const wrong = { currentPassword: "wrong horse", newPassword }
      assert.strictEqual(yield* change(wrong), "invalid_credentials")
      const short = { currentPassword: password, newPassword: "short" }
      assert.strictEqual(yield* change(short), "invalid_request")
      assert.strictEqual(codeOf(yield* me(there)), "ok")
      assert.strictEqual(yield* change({ currentPassword: password, newPassword }), "ok")
      assert.strictEqual(codeOf(yield* me(here)), "ok")
      assert.strictEqual(codeOf(yield* me(there)), "unauthorized")
      assert.strictEqual(codeOf(yield* login(email)), "invalid_credentials")
      assert.strictEqual(codeOf(yield* login(email, newPassword)), "ok")
    })
  )

  it.effect(
    "unlinks an external identity with the password, but never the last sign-in method",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const answer = yield* signup({ email: "linked@example.com", password })
        const token = tokenOf(answer)
        const developerId = String(at(answer.body, "developer", "id"))
        yield* sql`insert into developer_identities values
        ('github', '1', ${developerId}, 'l@example.com', 'linked', '2026-01-01T00:00:00Z')`
        const listed = yield* ask("GET", "/v1/developers/me/identities", { token })
        const linkedAt = "2026-01-01T00:00:00.000Z"
        const github = { provider: "github", email: "l@example.com", username: "linked", linkedAt }
        assert.deepStrictEqual(listed.body, { identities: [github] })
        const remove = (provider: string, body: unknown) =>
          ask("DELETE", `/v1/developers/me/identities/${provider}`, { token, body })
        assert.strictEqual(codeOf(yield* remove("github", {})), "invalid_credentials")
        assert.strictEqual(codeOf(yield* remove("google", { password })), "not_found")
        assert.deepStrictEqual((yield* remove("github", { password })).body, { identities: [] })
      })
  )

  it.effect("publishes the platform's capabilities without a key", () =>
    Effect.gen(function* () {
      const { body } = yield* ask("GET", "/v1/platform/info")
      assert.strictEqual(at(body, "signups"), "open")
      assert.deepStrictEqual(at(body, "oauthProviders"), [])
      assert.include(at(body, "features"), "multiplayer")
      assert.isString(at(body, "version"))
    })
  )
})

layer(on({ SVC_SIGNUPS: "invite" }))("sign-up by invitation", (it) => {
  it.effect("creates one account per invite code and none without a valid code", () =>
    Effect.gen(function* () {
      const [first, second] = codes
      for (const code of codes) yield* makeInvite(code)
      const email = "a@example.com"
      const none = yield* signup({ email, password })
      assert.strictEqual(codeOf(none), "invalid_invite_code")
      assert.match(String(at(none.body, "error", "message")), /needs an invite code/)
      const bad = { email, password, inviteCode: "third-code-3" }
      assert.strictEqual(codeOf(yield* signup(bad)), "invalid_invite_code")
      const both = yield* Effect.forEach(
        [email, "b@example.com"],
        (each) => signup({ email: each, password, inviteCode: first }),
        { concurrency: "unbounded" }
      )
      assert.sameMembers(both.map(codeOf), ["ok", "invite_code_used"])
      const sql = yield* SqlClient.SqlClient
      assert.lengthOf(yield* sql`select id from developers`, 1)
      const last = { email: "c@example.com", password, inviteCode: second }
      assert.strictEqual(codeOf(yield* signup(last)), "ok")
    })
  )
})

layer(on({ SVC_SIGNUPS: "open", SVC_THROTTLES: "on" }))("rate limits of developers", (it) => {
  it.effect(
    "refuses the 11th wrong password for an account from one address within 15 minutes",
    () =>
      Effect.gen(function* () {
        const email = "guessed@example.com"
        const token = tokenOf(yield* signup({ email, password }))
        for (let i = 0; i < 15; i++) assert.strictEqual(codeOf(yield* login(email)), "ok")
        for (let i = 0; i < 10; i++) {
          assert.strictEqual(codeOf(yield* login(email, "wrong")), "invalid_credentials")
        }
        const refused = yield* login(email)
        assert.strictEqual(refused.status, 429)
        assert.strictEqual(codeOf(refused), "rate_limited")
        assert.isAtLeast(Number(refused.headers.get("retry-after")), 1)
        assert.strictEqual(codeOf(yield* login("other@example.com")), "invalid_credentials")
        assert.strictEqual(codeOf(yield* me(token)), "ok")
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(codeOf(yield* login(email)), "ok")
      })
  )

  it.effect(
    "refuses the 61st wrong password from one address across accounts",
    () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("1 hour")
        const tries = yield* Effect.forEach(
          Array.from({ length: 61 }, (_, i) => `${i}@example.com`),
          (email) => Effect.map(login(email), codeOf),
          { concurrency: 4 }
        )
        assert.lengthOf(
          tries.filter((code) => code === "rate_limited"),
          1
        )
      }),
    { tags: "long" }
  )

  it.effect("refuses an eleventh sign-up from one address within an hour", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 hour")
      const made: Array<unknown> = []
      for (let i = 0; i < 11; i++) {
        made.push(codeOf(yield* signup({ email: `new${i}@example.com`, password })))
      }
      assert.deepStrictEqual(made, [...Array.from({ length: 10 }, () => "ok"), "rate_limited"])
    })
  )
})
