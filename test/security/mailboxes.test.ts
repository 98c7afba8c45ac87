/** The owner of a mailbox wins: sign-ups with an address that belongs to somebody else. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { at } from "#testing/players"
import {
  codeOf,
  emailConfig,
  makeEmailProject,
  NodeLive,
  password
} from "../support/email/email-harness.ts"
import { Inbox, type ReceivedMail } from "../support/email/inbox.ts"

const newPassword = "another horse battery"

/** The code of a link in a mail, by its purpose. */
const codeIn = ({ text }: ReceivedMail, purpose: "verify" | "reset" | "disown"): string =>
  new RegExp(`svc_${purpose}=([A-Za-z0-9_-]+)`).exec(text)?.[1] ?? ""

/** An attacker signs up with the address of a victim and links a provider to the player. */
const preHijack = Effect.fnUntraced(function* (email: string) {
  const project = yield* makeEmailProject
  yield* project.configure({ ...emailConfig, share: { inAppBrowser: { enabled: true } } })
  const inbox = yield* Inbox
  const sql = yield* SqlClient.SqlClient
  const attacker = yield* project.signUp(email)
  const mail = yield* inbox.next(email)
  yield* sql`
    insert into identities (environment_id, provider, subject, player_id, email_verified, linked_at)
    select environment_id, 'discord', ${`attacker of ${email}`}, id, false, created_at
    from players where id = ${attacker.id}`
  /** Names of the player's sign-in methods. */
  const methods = Effect.map(
    sql<{ readonly provider: string }>`
      select provider from identities where player_id = ${attacker.id} order by provider`,
    (rows) => rows.map(({ provider }) => provider)
  )
  const reset = Effect.gen(function* () {
    yield* project.post("password/forgot", { email })
    const token = codeIn(yield* inbox.next(email), "reset")
    return yield* project.post("password/reset", { token, password: newPassword })
  })
  return { ...project, attacker, inbox, mail, methods, reset, sql }
})

layer(NodeLive())("a stranger who signs up with the address of somebody else", (it) => {
  it.effect(
    "ends a stranger's identities, sessions, links and codes when the mailbox owner resets the password",
    () =>
      Effect.gen(function* () {
        const { attacker, mail, methods, post, reset, sql } = yield* preHijack("ada@example.com")
        const transfer = yield* post("transfer", {}, attacker)
        assert.strictEqual(transfer.status, 201)
        assert.deepStrictEqual(yield* methods, ["discord", "email"])
        assert.strictEqual((yield* reset).status, 200)
        assert.deepStrictEqual(yield* methods, ["email"])
        const refreshed = yield* post("refresh", { refreshToken: attacker.refreshToken })
        assert.strictEqual(codeOf(refreshed), "session_revoked")
        const redeemed = yield* post("transfer/redeem", { code: at(transfer.body, "code") })
        assert.strictEqual(codeOf(redeemed), "invalid_code")
        for (const purpose of ["verify", "disown"] as const) {
          const old = yield* post(`email/${purpose}`, { token: codeIn(mail, purpose) })
          assert.strictEqual(codeOf(old), "invalid_token", purpose)
        }
        const codes = yield* sql`select from single_use_codes where player_id = ${attacker.id}`
        assert.lengthOf(codes, 0)
      })
  )

  it.effect("keeps the providers of a player whose address was verified before the reset", () =>
    Effect.gen(function* () {
      const { mail, methods, post, reset } = yield* preHijack("bea@example.com")
      const verified = yield* post("email/verify", { token: codeIn(mail, "verify") })
      assert.strictEqual(verified.status, 200)
      assert.strictEqual((yield* reset).status, 200)
      assert.deepStrictEqual(yield* methods, ["discord", "email"])
    })
  )

  it.effect(
    "takes a stranger's address and password away when the mailbox owner disowns the sign-up",
    () =>
      Effect.gen(function* () {
        const { attacker, logIn, mail, me, methods, post, signUp } =
          yield* preHijack("cara@example.com")
        const token = codeIn(mail, "disown")
        assert.include(mail.text, "https://play.example.com/-/disown#svc_disown=")
        const answer = yield* post("email/disown", { token })
        assert.deepStrictEqual([answer.status, answer.body], [200, {}])
        assert.deepStrictEqual(yield* methods, ["discord"])
        assert.strictEqual(codeOf(yield* logIn("cara@example.com")), "invalid_credentials")
        const verified = yield* post("email/verify", { token: codeIn(mail, "verify") })
        assert.strictEqual(codeOf(verified), "invalid_token")
        const again = yield* post("email/disown", { token })
        assert.deepStrictEqual([again.status, codeOf(again)], [400, "invalid_token"])
        // Nothing else changes: the player keeps its session, and the owner may sign up.
        assert.strictEqual((yield* me(attacker)).status, 200)
        const owner = yield* signUp("cara@example.com")
        assert.notStrictEqual(owner.id, attacker.id)
      })
  )

  it.effect("makes a player a guest when the disowned address was the only sign-in method", () =>
    Effect.gen(function* () {
      const { inbox, me, post, signUp } = yield* preHijack("dora@example.com")
      const player = yield* signUp("dora2@example.com")
      const mail = yield* inbox.next("dora2@example.com")
      // A click on the first link does not void the second one.
      yield* post("email/verify", { token: codeIn(mail, "verify") })
      yield* post("email/disown", { token: codeIn(mail, "disown") })
      const { body } = yield* me(player)
      assert.strictEqual(at(body, "player", "isGuest"), true)
      assert.strictEqual(at(body, "player", "emailVerified"), false)
      assert.deepStrictEqual(at(body, "player", "identities"), [{ provider: "guest" }])
      const linked = yield* post("link/email", { email: "dora3@example.com", password }, player)
      assert.strictEqual(linked.status, 200)
    })
  )

  it.effect("lets the mailbox owner disown the sign-up of a stranger who is banned", () =>
    Effect.gen(function* () {
      const { attacker, ban, mail, methods, post } = yield* preHijack("eve@example.com")
      yield* ban(attacker.id)
      const answer = yield* post("email/disown", { token: codeIn(mail, "disown") })
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(yield* methods, ["discord"])
    })
  )

  it.effect("leads the second link of an app's mail to the service's own page", () =>
    Effect.gen(function* () {
      const { inbox, publishableKey, signUp } = yield* preHijack("flo@example.com")
      const redirectUrl = "https://game.example.com/in"
      yield* signUp("flo2@example.com", { redirectUrl })
      const mail = yield* inbox.next("flo2@example.com")
      assert.include(mail.text, `${redirectUrl}#svc_verify=`)
      const token = codeIn(mail, "disown")
      const link = `https://play.example.com/-/disown#svc_disown=${token}&svc_key=${publishableKey}`
      assert.include(mail.text, link)
      assert.include(mail.html, link.replace("&", "&amp;"))
    })
  )
})

layer(NodeLive({ SVC_THROTTLES: "on" }))("the permits of a mailbox", (it) => {
  it.effect(
    "sends a password reset to a mailbox after its verification mail and a refused sign-up",
    () =>
      Effect.gen(function* () {
        const { post, signUp } = yield* makeEmailProject
        const inbox = yield* Inbox
        const email = "ada@example.com"
        yield* signUp(email)
        yield* inbox.next(email)
        const refused = yield* post("email/signup", { email, password })
        assert.strictEqual(codeOf(refused), "email_taken")
        yield* post("password/forgot", { email })
        assert.notStrictEqual(codeIn(yield* inbox.next(email), "reset"), "")
      })
  )

  it.effect(
    "takes no permit of a mailbox for a refused sign-up or for a reset without an account",
    () =>
      Effect.gen(function* () {
        const { post, signUp } = yield* makeEmailProject
        const inbox = yield* Inbox
        const email = "bea@example.com"
        for (let i = 0; i < 7; i++) yield* post("password/forgot", { email })
        const player = yield* signUp(email)
        yield* inbox.next(email)
        yield* TestClock.adjust("1 minute")
        for (let i = 0; i < 7; i++) yield* post("email/signup", { email, password })
        assert.strictEqual((yield* post("email/resend", {}, player)).status, 200)
        yield* inbox.next(email)
        yield* post("password/forgot", { email })
        assert.notStrictEqual(codeIn(yield* inbox.next(email), "reset"), "")
      })
  )
})
