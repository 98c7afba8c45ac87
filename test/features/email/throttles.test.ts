/** Throttles of email sign-in and of its mails, on the test clock. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { at } from "#testing/players"
import {
  callsOf,
  codeOf,
  emailConfig,
  makeEmailProject,
  NodeLive,
  password
} from "../../support/email/email-harness.ts"
import { Inbox } from "../../support/email/inbox.ts"
import {
  addressOfNode,
  configure,
  makeDeveloper,
  makeTenantsOf,
  type Tenant
} from "../../support/http-stack.ts"

layer(NodeLive({ SVC_THROTTLES: "on" }))("throttles of email sign-in", (it) => {
  it.effect(
    "allows ten failed logins of an account within 15 minutes, whatever other accounts do",
    () =>
      Effect.gen(function* () {
        const { logIn, signUp } = yield* makeEmailProject
        yield* signUp("ada@example.com")
        yield* signUp("bea@example.com")
        for (let i = 0; i < 10; i++) {
          assert.strictEqual((yield* logIn("ada@example.com", "wrong password")).status, 401)
        }
        const limited = yield* logIn("ada@example.com")
        assert.deepStrictEqual([limited.status, codeOf(limited)], [429, "rate_limited"])
        assert.isAbove(Number(limited.headers.get("retry-after")), 0)
        assert.strictEqual((yield* logIn("bea@example.com")).status, 200)
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual((yield* logIn("ada@example.com")).status, 200)
      }),
    { tags: "long" }
  )

  it.effect(
    "does not throttle 15 successful logins with one email address",
    () =>
      Effect.gen(function* () {
        const { logIn, signUp } = yield* makeEmailProject
        yield* signUp("cara@example.com")
        for (let i = 0; i < 15; i++) {
          assert.strictEqual((yield* logIn("cara@example.com")).status, 200)
        }
      }),
    { tags: "long" }
  )

  it.effect("allows ten sign-ups or links from one address within an hour", () =>
    Effect.gen(function* () {
      const { guest, post, signUp } = yield* makeEmailProject
      const player = yield* guest
      for (let i = 0; i < 10; i++) yield* signUp(`p${i}@example.com`)
      const limited = yield* post("email/signup", { email: "p10@example.com", password })
      assert.deepStrictEqual([limited.status, codeOf(limited)], [429, "rate_limited"])
      const link = yield* post("link/email", { email: "p10@example.com", password }, player)
      assert.strictEqual(link.status, 429)
    })
  )

  it.effect(
    "sends an address one mail per minute and five per hour, and refuses a resend beyond",
    () =>
      Effect.gen(function* () {
        const { post, signUp } = yield* makeEmailProject
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

layer(NodeLive({ SVC_THROTTLES: "on" }))("throttles of reset links", (it) => {
  it.effect("answers the same but sends no reset link to an address beyond its limit", () =>
    Effect.gen(function* () {
      const { post, signUp } = yield* makeEmailProject
      const inbox = yield* Inbox
      yield* signUp("ada@example.com")
      yield* inbox.next("ada@example.com")
      const forgot = post("password/forgot", { email: "ada@example.com" })
      const answers = yield* Effect.all([forgot, forgot, forgot])
      for (const answer of answers) assert.deepStrictEqual([answer.status, answer.body], [200, {}])
      // Before the clock moves: a mail that is on its way for a minute counts as failed.
      yield* inbox.next("ada@example.com")
      yield* TestClock.adjust("1 minute")
      yield* forgot
      yield* inbox.next("ada@example.com")
      // The verification mail has permits of its own.
      assert.strictEqual(inbox.countAttempts("ada@example.com"), 3)
    })
  )

  it.effect(
    "answers the same but sends no reset links beyond the limit of a client",
    () =>
      Effect.gen(function* () {
        const { post, signUp } = yield* makeEmailProject
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
        assert.strictEqual(inbox.countAttempts("bea@example.com"), 2)
      }),
    { tags: "long" }
  )
})

layer(NodeLive({ SVC_THROTTLES: "on", SVC_TRUSTED_PROXIES: "127.0.0.1" }))(
  "mails of a developer",
  (it) => {
    it.effect(
      "sends an address 20 mails an hour from all projects of one developer",
      () =>
        Effect.gen(function* () {
          const inbox = yield* Inbox
          const { developerId } = yield* makeDeveloper
          const url = yield* addressOfNode
          const email = "ada@example.com"
          const signUpTo = Effect.fnUntraced(function* (tenant: Tenant, address: string) {
            yield* configure(tenant, emailConfig)
            const { post } = callsOf(url, tenant)
            const from = { "x-forwarded-for": address }
            const { body } = yield* post("email/signup", { email, password }, undefined, from)
            const player = { accessToken: String(at(body, "accessToken")) }
            return post("email/resend", {}, player)
          })
          const environments: Array<Tenant> = []
          for (let n = 0; n < 10; n++) {
            const { development, production } = yield* makeTenantsOf(developerId)
            environments.push(development, production)
          }
          for (const [n, tenant] of environments.entries()) {
            yield* signUpTo(tenant, `192.0.2.${n}`)
            yield* inbox.next(email)
          }
          const { development } = yield* makeTenantsOf(developerId)
          const resend = yield* signUpTo(development, "192.0.2.100")
          yield* TestClock.adjust("1 minute")
          const limited = yield* resend
          assert.deepStrictEqual([limited.status, codeOf(limited)], [429, "rate_limited"])
          // Projects of other developers are not affected.
          const other = yield* makeDeveloper
          const tenants = yield* makeTenantsOf(other.developerId)
          yield* signUpTo(tenants.production, "192.0.2.101")
          yield* inbox.next(email)
        }),
      { tags: "long" }
    )
  }
)
