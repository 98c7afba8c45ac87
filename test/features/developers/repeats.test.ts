/** Requests of developers that spend a secret, and whose answer was lost. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { at, request, type TestResponse } from "#testing/players"
import { codeOf } from "../../support/developer-requests.ts"
import { addressOfNode } from "../../support/http-stack.ts"
import { makeInvite } from "../../support/invites.ts"
import {
  completeFlow,
  DeveloperNodeLive,
  DeveloperProviders
} from "../../support/oauth/developer-harness.ts"
import { verifier } from "../../support/oauth/oauth-harness.ts"

const key = "a-key-of-128-random-bits"
const password = "correct horse"

const send = Effect.fnUntraced(function* (
  path: string,
  body: object,
  { repeatKey = key, token = "", method = "POST" } = {}
) {
  const url = yield* addressOfNode
  const headers = { "idempotency-key": repeatKey, authorization: `Bearer ${token}` }
  return yield* request(`${url}/v1/developers${path}`, { method, headers, body })
})

const tokenOf = ({ body }: TestResponse) => String(at(body, "token"))

/** Sends a request twice, and checks that the second answer is the first. */
const twice = Effect.fnUntraced(function* (...args: Parameters<typeof send>) {
  const first = yield* send(...args)
  assert.strictEqual(first.status, 200, JSON.stringify(first.body))
  const again = yield* send(...args)
  assert.deepStrictEqual(again.body, first.body)
  return first
})

const googleAccount = Effect.fnUntraced(function* (name: string) {
  const { google } = yield* DeveloperProviders
  google.accounts.set(name, { name, email: `${name}@example.com`, emailVerified: true })
  return name
})

layer(DeveloperNodeLive({ SVC_SIGNUPS: "invite" }))("a developer whose answer was lost", (it) => {
  it.effect("signs up once with one invitation, and gets the session again", () =>
    Effect.gen(function* () {
      yield* makeInvite("invite-1")
      const body = { email: "ada@example.com", password, inviteCode: "invite-1" }
      const first = yield* twice("/signup", body)
      assert.deepInclude(at(first.body, "invite"), { credited: 500 })
      const other = yield* send("/signup", body, { repeatKey: `another-${key}` })
      assert.strictEqual(codeOf(other), "invite_code_used")
      const changed = yield* send("/signup", { ...body, password: "another horse" })
      assert.deepStrictEqual([changed.status, codeOf(changed)], [422, "idempotency_key_reused"])
      yield* send("/logout", {}, { token: tokenOf(first) })
      assert.strictEqual(codeOf(yield* send("/signup", body)), "email_taken")
    })
  )

  it.effect("signs in with a provider, and a refused invitation leaves the code unspent", () =>
    Effect.gen(function* () {
      const { code } = yield* completeFlow("google", yield* googleAccount("bea"))
      const without = yield* send("/oauth/exchange", { code, verifier })
      assert.strictEqual(codeOf(without), "invalid_invite_code")
      yield* makeInvite("invite-2")
      const body = { code, verifier, inviteCode: "invite-2" }
      const first = yield* twice("/oauth/exchange", body)
      const spent = yield* send("/oauth/exchange", body, { repeatKey: `another-${key}` })
      assert.strictEqual(codeOf(spent), "invalid_code")
      yield* send("/logout", {}, { token: tokenOf(first) })
      assert.strictEqual(codeOf(yield* send("/oauth/exchange", body)), "invalid_code")
    })
  )

  it.effect("proves itself again, sets a password by the proof, and unlinks by another", () =>
    Effect.gen(function* () {
      yield* makeInvite("invite-3")
      const account = yield* googleAccount("cleo")
      const { code } = yield* completeFlow("google", account)
      const signedUp = yield* send("/oauth/exchange", { code, verifier, inviteCode: "invite-3" })
      const token = tokenOf(signedUp)
      const prove = Effect.gen(function* () {
        const flow = yield* completeFlow("google", account, { intent: "reauth", token })
        const proof = yield* twice("/oauth/exchange", { code: flow.code, verifier })
        return at(proof.body, "reauthToken")
      })
      const body = { reauthToken: yield* prove, newPassword: password }
      yield* twice("/me/password", body, { token })
      const spent = yield* send("/me/password", body, { token, repeatKey: `another-${key}` })
      assert.strictEqual(codeOf(spent), "invalid_credentials")
      const proof = { reauthToken: yield* prove }
      const gone = yield* twice("/me/identities/google", proof, { token, method: "DELETE" })
      assert.deepStrictEqual(at(gone.body, "identities"), [])
    })
  )

  it.effect("gets the list of linked accounts again, while the session that linked is open", () =>
    Effect.gen(function* () {
      yield* makeInvite("invite-6")
      const body = { email: "finn@example.com", password, inviteCode: "invite-6" }
      const token = tokenOf(yield* send("/signup", body))
      const account = yield* googleAccount("finn")
      const { code } = yield* completeFlow("google", account, { intent: "link", token })
      const linked = yield* twice("/oauth/exchange", { code, verifier })
      assert.strictEqual(at(linked.body, "identities", 0, "email"), "finn@example.com")
      yield* send("/logout", {}, { token })
      const late = yield* send("/oauth/exchange", { code, verifier })
      assert.strictEqual(codeOf(late), "invalid_code")
    })
  )

  it.effect("redeems an invitation once for its credit, and confirms its address", () =>
    Effect.gen(function* () {
      yield* makeInvite("invite-4")
      yield* makeInvite("invite-5")
      const body = { email: "dora@example.com", password, inviteCode: "invite-4" }
      const dora = yield* send("/signup", body)
      const again = yield* send("/me/invite-code", { code: "invite-5" }, { token: tokenOf(dora) })
      assert.strictEqual(codeOf(again), "already_redeemed")
      // As for an account of open sign-up, which has redeemed none.
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from invite_redemptions where developer_id = ${at(dora.body, "developer", "id")}`
      yield* twice("/me/invite-code", { code: "invite-5" }, { token: tokenOf(dora) })
    })
  )
})
