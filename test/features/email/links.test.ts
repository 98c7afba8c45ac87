/** Mail links for verification and password reset, their requests and their built-in pages. */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { at, request } from "#testing/players"
import { codeOf, makeEmailProject, NodeLive, password } from "../../support/email/email-harness.ts"
import { Inbox, type ReceivedMail } from "../../support/email/inbox.ts"
import { addressOfNode } from "../../support/http-stack.ts"

const tokenOf = ({ fragment }: ReceivedMail, purpose: "verify" | "reset"): string =>
  fragment.get(`svc_${purpose}`) ?? ""

const newPassword = "another horse battery"

/** A new player and its verification mail. */
const signUpWithMail = Effect.fnUntraced(function* (email: string, more: object = {}) {
  const project = yield* makeEmailProject
  const inbox = yield* Inbox
  const player = yield* project.signUp(email, more)
  const mail = yield* inbox.next(email)
  const verifiedOf = Effect.map(project.me(player), ({ body }) =>
    at(body, "player", "emailVerified")
  )
  return { ...project, inbox, mail, player, token: tokenOf(mail, "verify"), verifiedOf }
})

/** A new player and the mail with its reset link. */
const requestReset = Effect.fnUntraced(function* (email: string, more: object = {}) {
  const signed = yield* signUpWithMail(email)
  yield* signed.post("password/forgot", { email, ...more })
  const mail = yield* signed.inbox.next(email)
  return { ...signed, mail, token: tokenOf(mail, "reset") }
})

layer(NodeLive())("a verification link", (it) => {
  it.effect("sends a link after a sign-up, whose built-in page verifies the address", () =>
    Effect.gen(function* () {
      const { mail, post, publishableKey, token, verifiedOf } =
        yield* signUpWithMail("ada@example.com")
      assert.isTrue(mail.link.startsWith("https://play.example.com/-/verify#"), mail.link)
      assert.strictEqual(mail.fragment.get("svc_key"), publishableKey)
      const answer = yield* post("email/verify", { token })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(at(answer.body, "player", "emailVerified"), true)
      assert.isTrue(yield* verifiedOf)
    })
  )

  it.effect("leads a verification link to the app's page with nothing but the token", () =>
    Effect.gen(function* () {
      const redirectUrl = "https://game.example.com/in?tab=me&x=1"
      const { mail, token } = yield* signUpWithMail("bea@example.com", { redirectUrl })
      assert.strictEqual(mail.link, `${redirectUrl}#svc_verify=${token}`)
      assert.match(token, /^[A-Za-z0-9_-]{43}$/)
    })
  )

  it.effect("accepts a verification link once, for one of several concurrent requests", () =>
    Effect.gen(function* () {
      const { post, token } = yield* signUpWithMail("cara@example.com")
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, () => post("email/verify", { token })),
        { concurrency: "unbounded" }
      )
      const outcomes = answers.map((answer) => codeOf(answer) ?? answer.status).toSorted()
      assert.deepStrictEqual(outcomes, [200, ...Array.from({ length: 7 }, () => "invalid_token")])
      assert.deepStrictEqual(answers.map(({ status }) => status).toSorted(), [
        200,
        ...Array.from({ length: 7 }, () => 400)
      ])
    })
  )

  it.effect("expires a verification link after 24 hours", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const first = yield* signUpWithMail("dora@example.com")
      const second = yield* signUpWithMail("dana@example.com")
      // Ages the row instead of advancing the clock by a day, which would run every daily task.
      const age = (playerId: string, by: string) => sql`
        update single_use_codes set expires_at = expires_at - ${by}::text::interval
        where player_id = ${playerId} and purpose = 'verify'`
      yield* age(first.player.id, "24 hours")
      const late = yield* first.post("email/verify", { token: first.token })
      assert.deepStrictEqual([late.status, codeOf(late)], [400, "invalid_token"])
      assert.isFalse(yield* first.verifiedOf)
      yield* age(second.player.id, "23 hours 59 minutes 59 seconds")
      const early = yield* second.post("email/verify", { token: second.token })
      assert.strictEqual(early.status, 200)
    })
  )

  it.effect("accepts a code only in its environment, for its purpose and for its address", () =>
    Effect.gen(function* () {
      const { player, post, production, token } = yield* signUpWithMail("eve@example.com")
      const sql = yield* SqlClient.SqlClient
      for (const answer of [
        yield* production.post("email/verify", { token }),
        yield* post("password/reset", { token, password: newPassword }),
        yield* post("email/verify", { token: `${token}x` }),
        yield* post("email/verify", { token: "x" })
      ]) {
        assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "invalid_token"])
      }
      for (const token of ["", "x".repeat(129), 7, undefined]) {
        const answer = yield* post("email/verify", { token })
        assert.strictEqual(codeOf(answer), "invalid_request")
      }
      yield* sql`
        update identities set subject = 'other@example.com' where player_id = ${player.id}`
      const moved = yield* post("email/verify", { token })
      assert.deepStrictEqual([moved.status, codeOf(moved)], [400, "invalid_token"])
    })
  )

  it.effect("refuses a verification link during a ban and accepts it after the ban", () =>
    Effect.gen(function* () {
      const { ban, player, post, secretKey, token, url } = yield* signUpWithMail("flo@example.com")
      yield* ban(player.id)
      assert.strictEqual(codeOf(yield* post("email/verify", { token })), "player_banned")
      yield* request(`${url}/v1/admin/players/${player.id}/unban`, {
        headers: { "x-svc-key": secretKey },
        body: {}
      })
      assert.strictEqual((yield* post("email/verify", { token })).status, 200)
    })
  )

  it.effect("sends a verification link after linking an email", () =>
    Effect.gen(function* () {
      const { guest, me, post } = yield* makeEmailProject
      const inbox = yield* Inbox
      const player = yield* guest
      yield* post("link/email", { email: "gil@example.com", password }, player)
      const mail = yield* inbox.next("gil@example.com")
      yield* post("email/verify", { token: tokenOf(mail, "verify") })
      assert.isTrue(at((yield* me(player)).body, "player", "emailVerified"))
    })
  )

  it.effect("sends a verification link again on request until the address is verified", () =>
    Effect.gen(function* () {
      const { guest, inbox, player, post, token } = yield* signUpWithMail("hal@example.com")
      const again = yield* post("email/resend", {}, player)
      assert.deepStrictEqual([again.status, again.body], [200, {}])
      const second = yield* inbox.next("hal@example.com")
      assert.notStrictEqual(tokenOf(second, "verify"), token)
      assert.strictEqual((yield* post("email/verify", { token })).status, 200)
      const attempts = inbox.countAttempts("hal@example.com")
      assert.deepStrictEqual((yield* post("email/resend", {}, player)).body, {})
      const sql = yield* SqlClient.SqlClient
      const waiting = yield* sql`select id from mails where player_id = ${player.id}`
      assert.isEmpty(waiting)
      assert.strictEqual(inbox.countAttempts("hal@example.com"), attempts)
      const without = yield* post("email/resend", {}, yield* guest)
      assert.deepStrictEqual([without.status, codeOf(without)], [404, "not_found"])
    })
  )
})

layer(NodeLive())("a reset link", (it) => {
  it.effect("sets the password by a reset link and revokes every session", () =>
    Effect.gen(function* () {
      const { logIn, mail, player, post, token, verifiedOf } =
        yield* requestReset("ada@example.com")
      const other = yield* logIn("ada@example.com")
      assert.isTrue(mail.link.startsWith("https://play.example.com/-/reset#"), mail.link)
      assert.isFalse(yield* verifiedOf)
      const answer = yield* post("password/reset", { token, password: newPassword })
      assert.deepStrictEqual([answer.status, answer.body], [200, {}])
      for (const refreshToken of [player.refreshToken, at(other.body, "refreshToken")]) {
        const refused = yield* post("refresh", { refreshToken })
        assert.deepStrictEqual([refused.status, codeOf(refused)], [401, "session_revoked"])
      }
      assert.strictEqual(codeOf(yield* logIn("ada@example.com")), "invalid_credentials")
      assert.strictEqual((yield* logIn("ada@example.com", newPassword)).status, 200)
      // The reset proved control of the mailbox.
      assert.isTrue(yield* verifiedOf)
    })
  )

  it.effect("accepts a reset link once, and expires it after 30 minutes", () =>
    Effect.gen(function* () {
      const { inbox, logIn, post, token } = yield* requestReset("bea@example.com")
      assert.strictEqual(
        (yield* post("password/reset", { token, password: newPassword })).status,
        200
      )
      const again = yield* post("password/reset", { token, password })
      assert.deepStrictEqual([again.status, codeOf(again)], [400, "invalid_token"])
      yield* post("password/forgot", { email: "bea@example.com" })
      const late = tokenOf(yield* inbox.next("bea@example.com"), "reset")
      yield* TestClock.adjust("30 minutes")
      const answer = yield* post("password/reset", { token: late, password })
      assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "invalid_token"])
      assert.strictEqual((yield* logIn("bea@example.com", newPassword)).status, 200)
    })
  )

  it.effect("voids other reset links after one is used, and all after a password change", () =>
    Effect.gen(function* () {
      const { inbox, player, post, token } = yield* requestReset("cara@example.com")
      yield* post("password/forgot", { email: "cara@example.com" })
      const second = tokenOf(yield* inbox.next("cara@example.com"), "reset")
      yield* post(
        "password/change",
        {
          currentPassword: password,
          newPassword,
          refreshToken: player.refreshToken
        },
        player
      )
      const ended = yield* post("password/reset", { token, password })
      assert.strictEqual(codeOf(ended), "invalid_token")
      assert.strictEqual(
        codeOf(yield* post("password/reset", { token: second, password })),
        "invalid_token"
      )
    })
  )

  it.effect("leads a reset link to the app's page if one is given", () =>
    Effect.gen(function* () {
      const redirectUrl = "https://game.example.com/reset"
      const { mail, token } = yield* requestReset("dora@example.com", { redirectUrl })
      assert.strictEqual(mail.link, `${redirectUrl}#svc_reset=${token}`)
    })
  )

  it.effect("spends no reset link on a short password, and refuses it during a ban", () =>
    Effect.gen(function* () {
      const { ban, player, post, token } = yield* requestReset("eve@example.com")
      const short = yield* post("password/reset", { token, password: "1234567" })
      assert.strictEqual(codeOf(short), "invalid_request")
      yield* ban(player.id)
      const banned = yield* post("password/reset", { token, password: newPassword })
      assert.deepStrictEqual([banned.status, codeOf(banned)], [403, "player_banned"])
    })
  )

  it.effect("revokes the sessions of concurrent logins with the old password", () =>
    Effect.gen(function* () {
      const { logIn, post, token } = yield* requestReset("flo@example.com")
      const logins = Effect.all(
        Array.from({ length: 6 }, () => logIn("flo@example.com")),
        { concurrency: "unbounded" }
      )
      const [answers] = yield* Effect.all(
        [logins, post("password/reset", { token, password: newPassword })],
        { concurrency: "unbounded" }
      )
      for (const { body, status } of answers) {
        if (status !== 200) continue
        const refused = yield* post("refresh", { refreshToken: at(body, "refreshToken") })
        assert.strictEqual(codeOf(refused), "session_revoked")
      }
    })
  )
})

layer(NodeLive())("a request for a reset link", (it) => {
  it.effect("does the same work for a reset link, whether or not the address has an account", () =>
    Effect.gen(function* () {
      const { post, signUp } = yield* makeEmailProject
      const inbox = yield* Inbox
      const sql = yield* SqlClient.SqlClient
      yield* signUp("ada@example.com")
      yield* inbox.next("ada@example.com")
      // Holds the delivery, so that the rows stay in the outbox.
      yield* inbox.policy("hold")
      const unknown = yield* post("password/forgot", { email: "nobody@example.com" })
      const known = yield* post("password/forgot", { email: "ada@example.com" })
      for (const answer of [known, unknown]) {
        assert.deepStrictEqual([answer.status, answer.body], [200, {}])
        assert.deepStrictEqual(Array.from(answer.headers.keys()), Array.from(known.headers.keys()))
      }
      yield* inbox.attempted("ada@example.com", 2)
      const waiting = yield* sql<{ readonly playerId: string | null }>`select * from mails`
      assert.isNotEmpty(waiting)
      for (const { playerId } of waiting) assert.isNull(playerId)
      assert.strictEqual(inbox.countAttempts("nobody@example.com"), 0)
      yield* inbox.policy("accept")
    })
  )

  it.effect("accepts a reset request for a text that is no address, and queues no mail", () =>
    Effect.gen(function* () {
      const { post } = yield* makeEmailProject
      const sql = yield* SqlClient.SqlClient
      const count = sql<{ readonly count: number }>`select count(*)::int as count from mails`
      const before = yield* count
      for (const email of ["", "not an address", "a@b@c", `${"a".repeat(300)}@example.com`]) {
        const answer = yield* post("password/forgot", { email })
        assert.deepStrictEqual([answer.status, answer.body], [200, {}], email)
      }
      assert.deepStrictEqual(yield* count, before)
    })
  )

  it.effect("sends no reset link to a player of another environment", () =>
    Effect.gen(function* () {
      const { post, production, signUp } = yield* makeEmailProject
      const inbox = yield* Inbox
      yield* signUp("bea@example.com")
      yield* inbox.next("bea@example.com")
      assert.strictEqual(
        (yield* production.post("password/forgot", { email: "bea@example.com" })).status,
        200
      )
      yield* post("password/forgot", { email: "bea@example.com" })
      yield* inbox.next("bea@example.com")
      assert.strictEqual(inbox.countAttempts("bea@example.com"), 2)
    })
  )
})

layer(NodeLive())("the built-in pages of mail links", (it) => {
  for (const [purpose, endpoint] of [
    ["verify", "../v1/auth/email/verify"],
    ["reset", "../v1/auth/password/reset"],
    ["disown", "../v1/auth/email/disown"]
  ] as const) {
    it.effect(`serves /-/${purpose} self-contained, with a policy that allows nothing else`, () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const answer = yield* request(`${url}/-/${purpose}`)
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.headers.get("content-type"), "text/html; charset=utf-8")
        assert.strictEqual(answer.headers.get("referrer-policy"), "no-referrer")
        const html = String(answer.body)
        const script = /<script>([^]*)<\/script>/.exec(html)?.[1] ?? ""
        const style = /<style>([^]*)<\/style>/.exec(html)?.[1] ?? ""
        const source = (text: string) => `'sha256-${hash("sha256", text, "base64")}'`
        const policy = answer.headers.get("content-security-policy") ?? ""
        assert.deepStrictEqual(policy.split("; "), [
          "default-src 'none'",
          `script-src ${source(script)}`,
          `style-src ${source(style)}`,
          "connect-src 'self'",
          "form-action 'none'",
          "base-uri 'none'",
          "frame-ancestors 'none'"
        ])
        assert.include(script, `fetch("${endpoint}"`)
        assert.notMatch(html, /https?:\/\/|\son[a-z]+=|\sstyle=|src=/)
        assert.include(html, `<html lang="en">`)
        // The form needs a second step of a person: a scanner may press its button.
        const inputs = Array.from(html.matchAll(/<input [^>]*>/g), ([input]) => input)
        assert.lengthOf(inputs, 1)
        assert.match(inputs[0] ?? "", / required/)
        assert.include(inputs[0], purpose === "reset" ? 'type="password"' : 'type="checkbox"')
        assert.notInclude(html, "novalidate")
        assert.notMatch(script, /\bsubmit\(/)
      })
    )
  }

  it.effect("spends no token when a link is opened", () =>
    Effect.gen(function* () {
      const { post, token, url } = yield* signUpWithMail("ada@example.com")
      for (const method of ["GET", "HEAD"]) {
        yield* request(`${url}/-/verify#svc_verify=${token}`, { method })
        yield* request(`${url}/-/verify?svc_verify=${token}`, { method })
      }
      assert.strictEqual(
        codeOf(yield* request(`${url}/-/verify`, { body: { token } })),
        "method_not_allowed"
      )
      assert.strictEqual((yield* post("email/verify", { token })).status, 200)
    })
  )

  it.effect("lets the pages call the API, whatever origins the config allows", () =>
    Effect.gen(function* () {
      const { post, secretKey, token, url } = yield* signUpWithMail("bea@example.com")
      const pushed = yield* request(`${url}/v1/config`, {
        method: "PUT",
        headers: { "x-svc-key": secretKey },
        body: {
          version: 1,
          features: { emailLogin: true },
          web: { allowedOrigins: ["https://game.example.com"] }
        }
      })
      assert.strictEqual(pushed.status, 200)
      const elsewhere = { origin: "https://evil.example" }
      assert.strictEqual(
        codeOf(yield* post("email/verify", { token }, undefined, elsewhere)),
        "origin_not_allowed"
      )
      const own = { origin: "https://play.example.com" }
      assert.strictEqual((yield* post("email/verify", { token }, undefined, own)).status, 200)
    })
  )
})
