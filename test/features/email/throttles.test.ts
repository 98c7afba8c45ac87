/** The pace of sign-in with an email and of its mails (decisions 3.1.14), held on the test's clock. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { codeOf, makeWorld, NodeLive, password } from "../../support/email/email-harness.ts"
import { Inbox } from "../../support/email/inbox.ts"

layer(NodeLive({ SVC_THROTTLES: "on" }))("the pace of sign-in with an email", (it) => {
  it.effect("ten failed sign-ins of an account in 15 minutes; others are not held up", () =>
    Effect.gen(function* () {
      const { logIn, signUp } = yield* makeWorld
      yield* signUp("ada@example.com")
      yield* signUp("bea@example.com")
      for (let i = 0; i < 10; i++) {
        assert.strictEqual((yield* logIn("ada@example.com", "wrong password")).status, 401)
      }
      const held = yield* logIn("ada@example.com")
      assert.deepStrictEqual([held.status, codeOf(held)], [429, "rate_limited"])
      assert.isAbove(Number(held.headers.get("retry-after")), 0)
      assert.strictEqual((yield* logIn("bea@example.com")).status, 200)
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual((yield* logIn("ada@example.com")).status, 200)
    })
  )

  it.effect("sign-ins that succeed do not count", () =>
    Effect.gen(function* () {
      const { logIn, signUp } = yield* makeWorld
      yield* signUp("cara@example.com")
      for (let i = 0; i < 15; i++) {
        assert.strictEqual((yield* logIn("cara@example.com")).status, 200)
      }
    })
  )

  it.effect("ten sign-ups in an hour from one address, and links count among them", () =>
    Effect.gen(function* () {
      const { guest, post, signUp } = yield* makeWorld
      const player = yield* guest
      for (let i = 0; i < 10; i++) yield* signUp(`p${i}@example.com`)
      const held = yield* post("email/signup", { email: "p10@example.com", password })
      assert.deepStrictEqual([held.status, codeOf(held)], [429, "rate_limited"])
      const link = yield* post("link/email", { email: "p10@example.com", password }, player)
      assert.strictEqual(link.status, 429)
    })
  )

  it.effect("an address gets a mail a minute and five in an hour; a resend says so", () =>
    Effect.gen(function* () {
      const { post, signUp } = yield* makeWorld
      const inbox = yield* Inbox
      const player = yield* signUp("dora@example.com")
      yield* inbox.next("dora@example.com")
      const early = yield* post("email/resend", {}, player)
      assert.deepStrictEqual([early.status, codeOf(early)], [429, "rate_limited"])
      assert.isAtMost(Number(early.headers.get("retry-after")), 60)
      for (let i = 0; i < 4; i++) {
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* post("email/resend", {}, player)).status, 200)
        yield* inbox.next("dora@example.com")
      }
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* post("email/resend", {}, player)).status, 429)
    })
  )
})

layer(NodeLive({ SVC_THROTTLES: "on" }))("the pace of reset links", (it) => {
  it.effect("whoever asks too often for an address is answered the same and gets no mail", () =>
    Effect.gen(function* () {
      const { post, signUp } = yield* makeWorld
      const inbox = yield* Inbox
      yield* signUp("ada@example.com")
      yield* inbox.next("ada@example.com")
      const forgot = post("password/forgot", { email: "ada@example.com" })
      const answers = yield* Effect.all([forgot, forgot, forgot])
      for (const answer of answers) assert.deepStrictEqual([answer.status, answer.body], [200, {}])
      yield* TestClock.adjust("1 minute")
      yield* forgot
      yield* inbox.next("ada@example.com")
      assert.strictEqual(inbox.countAsked("ada@example.com"), 2)
    })
  )

  it.effect("whoever asks for many addresses, too", () =>
    Effect.gen(function* () {
      const { post, signUp } = yield* makeWorld
      const inbox = yield* Inbox
      yield* signUp("bea@example.com")
      yield* inbox.next("bea@example.com")
      yield* TestClock.adjust("1 minute")
      for (let i = 0; i < 30; i++) {
        const answer = yield* post("password/forgot", { email: `n${i}@example.com` })
        assert.deepStrictEqual([answer.status, answer.body], [200, {}])
      }
      const answer = yield* post("password/forgot", { email: "bea@example.com" })
      assert.deepStrictEqual([answer.status, answer.body], [200, {}])
      yield* TestClock.adjust("1 hour")
      yield* post("password/forgot", { email: "bea@example.com" })
      yield* inbox.next("bea@example.com")
      assert.strictEqual(inbox.countAsked("bea@example.com"), 2)
    })
  )
})
