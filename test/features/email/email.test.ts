/** Accounts with an email and a password: sign-up, login, linking and password changes. */
import { NodeCrypto } from "@effect/platform-node"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Kdf } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { at } from "#testing/players"
import {
  codeOf,
  makeEmailProject,
  NodeLive,
  password,
  emailConfig
} from "../../support/email/email-harness.ts"
import { configure } from "../../support/http-stack.ts"

const identitiesOf = (body: unknown) => at(body, "player", "identities")

const hashOf = Effect.fnUntraced(function* (playerId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly passwordHash: string }>`
    select password_hash from identities where player_id = ${playerId} and provider = 'email'`
  return rows[0]?.passwordHash ?? ""
})

/** The password hashed with weaker parameters than the current ones. */
const weakHash = Effect.gen(function* () {
  const kdf = yield* Kdf.Kdf
  const salt = new Uint8Array(16).fill(3)
  const algorithm = Kdf.argon2id({ memory: 1024, passes: 1, parallelism: 1 })
  const derived = yield* kdf.derive(algorithm, new TextEncoder().encode(password), {
    salt,
    length: 32
  })
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64").replace(/=+$/, "")
  return `$argon2id$v=19$m=1024,t=1,p=1$${text(salt)}$${text(derived)}`
}).pipe(Effect.provide(NodeCrypto.layerKdf))

layer(NodeLive())("signing up with an email", (it) => {
  it.effect("creates a permanent player with a session, without a guest phase", () =>
    Effect.gen(function* () {
      const { me, post } = yield* makeEmailProject
      const answer = yield* post("email/signup", {
        email: " Ada@Example.COM ",
        password,
        displayName: " Ada "
      })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(at(answer.body, "player", "displayName"), "Ada")
      assert.strictEqual(at(answer.body, "player", "isGuest"), false)
      assert.strictEqual(at(answer.body, "player", "emailVerified"), false)
      assert.deepStrictEqual(identitiesOf(answer.body), [{ provider: "email" }])
      const mine = yield* me({ accessToken: String(at(answer.body, "accessToken")) })
      assert.deepStrictEqual(at(mine.body, "player"), at(answer.body, "player"))
    })
  )

  it.effect("refuses a second account with an address in an environment, whatever its case", () =>
    Effect.gen(function* () {
      const { post, production, signUp } = yield* makeEmailProject
      yield* signUp("bea@example.com")
      const again = yield* post("email/signup", { email: "BEA@example.com", password })
      assert.deepStrictEqual([again.status, codeOf(again)], [409, "email_taken"])
      const elsewhere = yield* production.post("email/signup", {
        email: "bea@example.com",
        password
      })
      assert.strictEqual(elsewhere.status, 200)
    })
  )

  it.effect("creates exactly one player for concurrent sign-ups with one address", () =>
    Effect.gen(function* () {
      const { post } = yield* makeEmailProject
      const sql = yield* SqlClient.SqlClient
      const before = yield* sql`select id from players`
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, () =>
          post("email/signup", { email: "race@example.com", password })
        ),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(answers.map(({ status }) => status).toSorted(), [
        200,
        ...Array.from({ length: 7 }, () => 409)
      ])
      const after = yield* sql`select id from players`
      assert.strictEqual(after.length - before.length, 1)
    })
  )

  it.effect("refuses invalid addresses and passwords under 8 or over 256 characters", () =>
    Effect.gen(function* () {
      const { post } = yield* makeEmailProject
      const issueOf = (body: object) =>
        Effect.map(post("email/signup", body), ({ body: response, status }) => [
          status,
          at(response, "error", "details", "issues", 0, "path")
        ])
      for (const email of [
        "",
        "ada",
        "@example.com",
        "a b@example.com",
        "ada@example.com\r\nBcc: eve@example.com",
        "ada@example.com,eve@example.com",
        "ada,eve@example.com",
        "<ada@example.com>",
        '"ada"@example.com',
        "ada@exam\u0000ple.com",
        "ada\u3164@example.com",
        "ada@ex..com",
        `${"a".repeat(250)}@example.com`,
        "a".repeat(15_000),
        7,
        null
      ]) {
        assert.deepStrictEqual(yield* issueOf({ email, password }), [400, "email"])
      }
      for (const wrong of ["1234567", "x".repeat(257), 12_345_678]) {
        const body = { email: "ok@example.com", password: wrong }
        assert.deepStrictEqual(yield* issueOf(body), [400, "password"])
      }
      for (const [email, right] of [
        ["least@example.com", "12345678"],
        ["most@example.com", "\u00e9".repeat(256)]
      ]) {
        assert.strictEqual((yield* post("email/signup", { email, password: right })).status, 200)
      }
    })
  )

  it.effect("refuses a display name with line breaks, which could inject mail headers", () =>
    Effect.gen(function* () {
      const { post } = yield* makeEmailProject
      const answer = yield* post("email/signup", {
        email: "crlf@example.com",
        password,
        displayName: "Ada\r\nBcc: eve@example.com"
      })
      assert.strictEqual(answer.status, 400)
    })
  )

  it.effect("refuses the sign-up while the feature is off, before it validates the body", () =>
    Effect.gen(function* () {
      const { post, ...tenant } = yield* makeEmailProject
      const player = yield* tenant.guest
      yield* configure(tenant, { ...emailConfig, features: { emailLogin: false } })
      for (const path of [
        "email/signup",
        "email/login",
        "email/verify",
        "email/disown",
        "password/forgot",
        "password/reset"
      ]) {
        assert.strictEqual(codeOf(yield* post(path, {})), "feature_disabled", path)
      }
      for (const path of ["email/resend", "link/email", "password/change"]) {
        assert.strictEqual(codeOf(yield* post(path, {}, player)), "feature_disabled", path)
        assert.strictEqual(codeOf(yield* post(path, {})), "unauthorized", path)
      }
    })
  )

  it.effect("refuses a redirectUrl that the config does not allow and creates no account", () =>
    Effect.gen(function* () {
      const { guest, post, production, signUp } = yield* makeEmailProject
      const player = yield* guest
      const mail = { email: "redirect@example.com", password }
      const redirectUrl = "https://game.example.com@evil.example/"
      const own = yield* signUp("own@example.com")
      for (const answer of [
        yield* post("email/signup", { ...mail, redirectUrl }),
        yield* post("link/email", { ...mail, redirectUrl }, player),
        yield* post("email/resend", { redirectUrl }, own),
        yield* post("password/forgot", { email: mail.email, redirectUrl }),
        yield* production.post("email/signup", { ...mail, redirectUrl: "http://localhost:5173/" })
      ]) {
        assert.strictEqual(answer.status, 400)
        assert.strictEqual(at(answer.body, "error", "details", "issues", 0, "path"), "redirectUrl")
      }
      assert.strictEqual((yield* post("email/signup", mail)).status, 200)
    })
  )
})

layer(NodeLive())("signing in with an email", (it) => {
  it.effect("creates a session of the same player, whatever the case of the address", () =>
    Effect.gen(function* () {
      const { logIn, signUp } = yield* makeEmailProject
      const { id } = yield* signUp("ada@example.com")
      const answer = yield* logIn(" ADA@example.com")
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(at(answer.body, "player", "id"), id)
      assert.strictEqual(at(answer.body, "expiresIn"), 900)
    })
  )

  it.effect("answers the same to an unknown address, a foreign one and a wrong password", () =>
    Effect.gen(function* () {
      const { logIn, production, signUp } = yield* makeEmailProject
      yield* signUp("bea@example.com")
      const unknown = yield* logIn("nobody@example.com")
      const wrong = yield* logIn("bea@example.com", "another password")
      const foreign = yield* production.logIn("bea@example.com")
      for (const answer of [unknown, wrong, foreign]) {
        assert.strictEqual(answer.status, 401)
        assert.deepStrictEqual(answer.body, unknown.body)
        assert.strictEqual(codeOf(answer), "invalid_credentials")
        const headers = Array.from(answer.headers.keys())
        assert.deepStrictEqual(headers, Array.from(unknown.headers.keys()))
      }
    })
  )

  it.effect("reveals a ban only with the correct password", () =>
    Effect.gen(function* () {
      const { ban, logIn, signUp } = yield* makeEmailProject
      const { id } = yield* signUp("cara@example.com")
      yield* ban(id)
      const right = yield* logIn("cara@example.com")
      assert.deepStrictEqual([right.status, codeOf(right)], [403, "player_banned"])
      const wrong = yield* logIn("cara@example.com", "another password")
      assert.deepStrictEqual([wrong.status, codeOf(wrong)], [401, "invalid_credentials"])
    })
  )

  it.effect("replaces a hash with weaker parameters after a successful login", () =>
    Effect.gen(function* () {
      const { logIn, signUp } = yield* makeEmailProject
      const sql = yield* SqlClient.SqlClient
      const { id } = yield* signUp("dora@example.com")
      const weak = yield* weakHash
      yield* sql`update identities set password_hash = ${weak} where player_id = ${id}`
      yield* logIn("dora@example.com", "another password")
      assert.strictEqual(yield* hashOf(id), weak)
      assert.strictEqual((yield* logIn("dora@example.com")).status, 200)
      const strong = yield* hashOf(id)
      assert.match(strong, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
      assert.strictEqual((yield* logIn("dora@example.com")).status, 200)
      assert.strictEqual(yield* hashOf(id), strong)
    })
  )

  it.effect("treats a deleted account like an unknown one", () =>
    Effect.gen(function* () {
      const { logIn, signUp } = yield* makeEmailProject
      const sql = yield* SqlClient.SqlClient
      const { id } = yield* signUp("gone@example.com")
      yield* sql`delete from players where id = ${id}`
      assert.strictEqual(codeOf(yield* logIn("gone@example.com")), "invalid_credentials")
    })
  )
})

layer(NodeLive())("linking an email", (it) => {
  it.effect("makes a guest permanent and keeps its id, session and data", () =>
    Effect.gen(function* () {
      const { guest, logIn, me, post } = yield* makeEmailProject
      const player = yield* guest
      const before = yield* me(player)
      const answer = yield* post("link/email", { email: "Ada@example.com", password }, player)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(at(answer.body, "player", "id"), player.id)
      assert.strictEqual(at(answer.body, "player", "isGuest"), false)
      assert.deepStrictEqual(identitiesOf(answer.body), [{ provider: "email" }])
      const after = yield* me(player)
      assert.deepStrictEqual(at(after.body, "player"), at(answer.body, "player"))
      assert.strictEqual(
        at(after.body, "player", "createdAt"),
        at(before.body, "player", "createdAt")
      )
      const refreshed = yield* post("refresh", { refreshToken: player.refreshToken })
      assert.strictEqual(at(refreshed.body, "player", "id"), player.id)
      const later = yield* logIn("ada@example.com")
      assert.strictEqual(at(later.body, "player", "id"), player.id)
    })
  )

  it.effect("refuses to link an address of another player, and merges nothing", () =>
    Effect.gen(function* () {
      const { guest, logIn, me, post, signUp } = yield* makeEmailProject
      const owner = yield* signUp("bea@example.com")
      const player = yield* guest
      const answer = yield* post("link/email", { email: "bea@example.com", password }, player)
      assert.deepStrictEqual([answer.status, codeOf(answer)], [409, "identity_already_linked"])
      assert.strictEqual(at((yield* me(player)).body, "player", "isGuest"), true)
      const still = yield* logIn("bea@example.com")
      assert.strictEqual(at(still.body, "player", "id"), owner.id)
    })
  )

  it.effect("refuses to link a second address, and the same address again", () =>
    Effect.gen(function* () {
      const { post, signUp } = yield* makeEmailProject
      const player = yield* signUp("cara@example.com")
      for (const email of ["other@example.com", "cara@example.com"]) {
        const answer = yield* post("link/email", { email, password }, player)
        assert.deepStrictEqual([answer.status, codeOf(answer)], [409, "email_already_linked"])
      }
    })
  )

  it.effect(
    "links an email once under concurrent requests, and answers email_already_linked to the rest",
    () =>
      Effect.gen(function* () {
        const { guest, post } = yield* makeEmailProject
        const player = yield* guest
        const body = { email: "race@example.com", password }
        const answers = yield* Effect.all(
          Array.from({ length: 6 }, () => post("link/email", body, player)),
          { concurrency: "unbounded" }
        )
        const codes = answers.map((answer) => codeOf(answer) ?? answer.status).toSorted()
        assert.deepStrictEqual(codes, [
          200,
          ...Array.from({ length: 5 }, () => "email_already_linked")
        ])
      })
  )

  it.effect("refuses to link an email with the access token of a revoked session", () =>
    Effect.gen(function* () {
      const { guest, logIn, post } = yield* makeEmailProject
      const player = yield* guest
      yield* post("logout", { refreshToken: player.refreshToken })
      const email = "late@example.com"
      const answer = yield* post("link/email", { email, password }, player)
      assert.deepStrictEqual([answer.status, codeOf(answer)], [401, "session_revoked"])
      assert.strictEqual(codeOf(yield* logIn(email)), "invalid_credentials")
    })
  )

  it.effect("refuses to link an email to banned and deleted players", () =>
    Effect.gen(function* () {
      const { ban, guest, post } = yield* makeEmailProject
      const sql = yield* SqlClient.SqlClient
      const banned = yield* guest
      yield* ban(banned.id)
      const body = { email: "banned@example.com", password }
      assert.strictEqual(codeOf(yield* post("link/email", body, banned)), "player_banned")
      const gone = yield* guest
      yield* sql`delete from players where id = ${gone.id}`
      assert.strictEqual(codeOf(yield* post("link/email", body, gone)), "unauthorized")
    })
  )
})

layer(NodeLive())("changing the password", (it) => {
  it.effect("revokes every other session at a change of the password, and keeps this one", () =>
    Effect.gen(function* () {
      const { logIn, post, signUp } = yield* makeEmailProject
      const here = yield* signUp("ada@example.com")
      const other = yield* logIn("ada@example.com")
      const { refreshToken } = here
      const newPassword = "another horse battery"
      const body = { currentPassword: password, newPassword, refreshToken }
      const changed = yield* post("password/change", body, here)
      assert.deepStrictEqual([changed.status, changed.body], [200, {}])
      const away = yield* post("refresh", { refreshToken: at(other.body, "refreshToken") })
      assert.strictEqual(codeOf(away), "session_revoked")
      assert.strictEqual((yield* post("refresh", { refreshToken })).status, 200)
      assert.strictEqual(codeOf(yield* logIn("ada@example.com")), "invalid_credentials")
      assert.strictEqual((yield* logIn("ada@example.com", newPassword)).status, 200)
    })
  )

  it.effect("requires the current password and an own refresh token to change the password", () =>
    Effect.gen(function* () {
      const { guest, logIn, post, signUp } = yield* makeEmailProject
      const player = yield* signUp("bea@example.com")
      const stranger = yield* guest
      const newPassword = "another horse battery"
      const change = (who: typeof player, currentPassword: string, refreshToken: string) =>
        post("password/change", { currentPassword, newPassword, refreshToken }, who)
      const { refreshToken } = player
      const wrong = yield* change(player, "not the password", refreshToken)
      assert.deepStrictEqual([wrong.status, codeOf(wrong)], [401, "invalid_credentials"])
      const foreign = yield* change(player, password, stranger.refreshToken)
      assert.deepStrictEqual([foreign.status, codeOf(foreign)], [401, "invalid_refresh_token"])
      const without = yield* change(stranger, password, stranger.refreshToken)
      assert.strictEqual(codeOf(without), "invalid_credentials")
      assert.strictEqual((yield* logIn("bea@example.com")).status, 200)
    })
  )
})
