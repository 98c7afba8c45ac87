/** Invite codes: who they let in, their credit, and the confirmation of the address. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { DeveloperId } from "#rpc/ids"
import { Ledger } from "#server/features/money/ledger"
import { at, request, type TestResponse } from "#testing/players"
import { NodeLive } from "../../support/email/email-harness.ts"
import { Inbox } from "../../support/email/inbox.ts"
import { addressOfNode, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { makeInvite } from "../../support/invites.ts"
import { operate } from "../../support/operate.ts"
import { codeOf } from "../../support/bodies.ts"

const password = "correct horse"
const inviteOf = ({ body }: TestResponse) => at(body, "invite")
const tokenOf = ({ body }: TestResponse) => at(body, "token")
const balancesOf = (answer: TestResponse) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    return yield* ledger.balances(
      Schema.decodeUnknownSync(DeveloperId)(at(answer.body, "developer", "id"))
    )
  })

const post = (path: string, body?: unknown, token?: unknown) =>
  Effect.flatMap(addressOfNode, (url) =>
    request(`${url}/v1/developers${path}`, {
      method: "POST",
      ...(body === undefined ? {} : { body }),
      ...(token === undefined ? {} : { headers: { authorization: `Bearer ${String(token)}` } })
    })
  )

const signup = (email: string, inviteCode?: string) =>
  post("/signup", { email, password, inviteCode })
const redeem = (answer: TestResponse, code: string) =>
  post("/me/invite-code", { code }, tokenOf(answer))

layer(NodeLive({ SVC_SIGNUPS: "open" }))("invite codes with open sign-up", (it) => {
  it.effect("grants 500 cents at sign-up, pending until the address is confirmed by mail", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      yield* makeInvite("for-ada", 2)
      const ada = yield* signup("ada@example.com", "for-ada")
      assert.deepStrictEqual(inviteOf(ada), { credited: 500, currency: "usd", pending: true })
      assert.isFalse(at(ada.body, "developer", "emailVerified"))
      assert.deepInclude(yield* balancesOf(ada), { invite: 0n, invitePending: 500n })
      assert.deepStrictEqual((yield* post("/me/email/verification", {}, tokenOf(ada))).body, {})
      const { fragment, headers, link } = yield* inbox.next("ada@example.com")
      assert.include(headers.get("subject") ?? "", "Confirm your email")
      assert.match(link, /^https:\/\/play\.example\.com\/-\/confirm#/)
      const token = fragment.get("svc_confirm")
      const both = yield* Effect.all(
        [post("/email/verify", { token }), post("/email/verify", { token })],
        { concurrency: 2 }
      )
      assert.sameMembers(both.map(codeOf), ["ok", "invalid_token"])
      assert.deepInclude(yield* balancesOf(ada), { invite: 500n, invitePending: 0n })
      const confirmed = both.find(({ status }) => status === 200)
      assert.isTrue(at(confirmed?.body, "developer", "emailVerified"))
      const page = yield* request(`${yield* addressOfNode}/-/confirm`, { method: "GET" })
      assert.strictEqual(page.status, 200)
    })
  )

  it.effect(
    "expires the link of a verification mail after a day",
    () =>
      Effect.gen(function* () {
        const inbox = yield* Inbox
        const late = yield* signup("late@example.com")
        assert.strictEqual((yield* post("/me/email/verification", {}, tokenOf(late))).status, 200)
        const { fragment } = yield* inbox.next("late@example.com")
        yield* TestClock.adjust("25 hours")
        const expired = yield* post("/email/verify", { token: fragment.get("svc_confirm") })
        assert.deepStrictEqual([expired.status, codeOf(expired)], [400, "invalid_token"])
      }),
    { tags: "long" }
  )

  it.effect("answers mail_unavailable where the mail server refuses the mail", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const token = tokenOf(yield* signup("refused@example.com"))
      yield* inbox.policy("refuse")
      const refused = yield* post("/me/email/verification", {}, token)
      yield* inbox.policy("accept")
      assert.deepStrictEqual([refused.status, codeOf(refused)], [503, "mail_unavailable"])
    })
  )

  it.effect("redeems a code for an existing account, once in its life", () =>
    Effect.gen(function* () {
      yield* makeInvite("first")
      yield* makeInvite("second", 5)
      const grace = yield* signup("grace@example.com")
      assert.isUndefined(inviteOf(grace))
      const answers = yield* Effect.all(
        [redeem(grace, "second"), redeem(grace, "second"), redeem(grace, "first")],
        { concurrency: "unbounded" }
      )
      assert.sameMembers(answers.map(codeOf), ["ok", "already_redeemed", "already_redeemed"])
      const credit = { credited: 500, currency: "usd", pending: true }
      assert.deepStrictEqual(answers.find(({ status }) => status === 200)?.body, credit)
      assert.deepInclude(yield* balancesOf(grace), { invitePending: 500n })
    })
  )

  it.effect("says of a code that it is unknown, used, or has no uses left", () =>
    Effect.gen(function* () {
      yield* makeInvite("single")
      yield* makeInvite("double", 2)
      for (const [n, code] of ["single", "double", "double"].entries()) {
        assert.strictEqual(codeOf(yield* signup(`use-${n}@example.com`, code)), "ok")
      }
      const last = yield* signup("last@example.com")
      const outcomes = [
        ["nonsense", 400, "invalid_invite_code"],
        ["", 400, "invalid_invite_code"],
        ["single", 409, "invite_code_used"],
        ["double", 409, "invite_limit_reached"]
      ] as const
      for (const [code, status, error] of outcomes) {
        for (const answer of [yield* redeem(last, code), yield* signup("none@example.com", code)]) {
          assert.deepStrictEqual([answer.status, codeOf(answer)], [status, error], code)
        }
      }
      assert.strictEqual(codeOf(yield* signup("none@example.com")), "ok")
    })
  )

  it.effect("requires a developer session to redeem an invite code", () =>
    Effect.gen(function* () {
      const answer = yield* post("/me/invite-code", { code: "any" })
      assert.deepStrictEqual([answer.status, codeOf(answer)], [401, "unauthorized"])
    })
  )

  it.effect("stores only hashes of codes and links", () =>
    Effect.gen(function* () {
      yield* makeInvite("a-secret-code")
      const sql = yield* SqlClient.SqlClient
      const stored = JSON.stringify(yield* sql`select * from invite_codes`)
      assert.notInclude(stored, "a-secret-code")
    })
  )
})

layer(nodeWith({ SVC_SIGNUPS: "invite" }).pipe(Layer.provideMerge(SharedDatabase.layer)))(
  "sign-up by invitation at once",
  (it) => {
    it.effect("lets one of 50 in with the last use, with its credit, and stores nothing else", () =>
      Effect.gen(function* () {
        yield* makeInvite("popular", 3)
        for (const email of ["one@example.com", "two@example.com"]) {
          assert.strictEqual(codeOf(yield* signup(email, "popular")), "ok")
        }
        const answers = yield* Effect.forEach(
          Array.from({ length: 50 }, (_, n) => `rush-${n}@example.com`),
          (email) => signup(email, "popular"),
          { concurrency: "unbounded" }
        )
        const codes = answers.map(codeOf)
        assert.lengthOf(
          codes.filter((code) => code === "ok"),
          1
        )
        assert.lengthOf(
          codes.filter((code) => code === "invite_limit_reached"),
          49
        )
        const sql = yield* SqlClient.SqlClient
        assert.lengthOf(yield* sql`select id from developers`, 3)
        assert.lengthOf(yield* sql`select developer_id from invite_redemptions`, 3)
        assert.deepEqual((yield* sql`select used from invite_codes`)[0]?.["used"], 3)
      })
    )
  }
)

layer(nodeWith({ SVC_SIGNUPS: "invite" }).pipe(Layer.provideMerge(SharedDatabase.layer)))(
  "the operator's invite codes",
  (it) => {
    it.effect(
      "lets the operator make an invite code of several uses, list it without its text, and revoke it, audited",
      () =>
        Effect.gen(function* () {
          const databaseUrl = Redacted.value(yield* SharedDatabase)
          const act = (...words: ReadonlyArray<string>) => operate(databaseUrl, "invite", ...words)
          const code = yield* act("create", "--uses", "2", "--note", "for the jam")
          assert.match(code, /^[\w-]{43}$/)
          assert.strictEqual(codeOf(yield* signup("a@example.com", code)), "ok")
          const listed = yield* act("list")
          assert.match(listed, /^inv_\w+ {2}1\/2 {2}open {2}.* {2}for the jam$/)
          assert.notInclude(listed, code)
          const [id = ""] = listed.split(" ")
          yield* act("revoke", id)
          assert.strictEqual(codeOf(yield* signup("b@example.com", code)), "invalid_invite_code")
          assert.match(yield* act("revoke", "inv_none"), /^failed: There is no invite code/)
          assert.match(yield* act("create", "--uses", "0"), /^failed: .*--uses/s)
          const sql = yield* SqlClient.SqlClient
          const entries = yield* sql`
            select action, project_id, actor_id, target_id from audit order by id`
          assert.deepStrictEqual(
            entries.map((entry) => Object.values(entry)),
            [
              ["invite.create", "deployment", "operator", id],
              ["invite.revoke", "deployment", "operator", id]
            ]
          )
        })
    )
  }
)
