/** Links of mails whose answer was lost. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { at } from "#testing/players"
import { codeOf, makeEmailProject, NodeLive, password } from "../../support/email/email-harness.ts"
import { Inbox } from "../../support/email/inbox.ts"

const header = { "idempotency-key": "a-key-of-128-random-bits" }

const signedUp = Effect.fnUntraced(function* (email: string) {
  const project = yield* makeEmailProject
  const inbox = yield* Inbox
  const player = yield* project.signUp(email)
  const mail = yield* inbox.next(email)
  const send = (path: string, body: object, headers = header) =>
    project.post(path, body, undefined, headers)
  return { ...project, inbox, player, mail, send }
})

layer(NodeLive())("the link of a mail", (it) => {
  it.effect("verifies an address again with the same key, and is spent for another", () =>
    Effect.gen(function* () {
      const { mail, player, send } = yield* signedUp("ada@example.com")
      const body = { token: mail.fragment.get("svc_verify") }
      const first = yield* send("email/verify", body)
      const again = yield* send("email/verify", body)
      assert.isTrue(at(first.body, "player", "emailVerified"))
      assert.deepStrictEqual(again.body, first.body)
      assert.strictEqual(at(again.body, "player", "id"), player.id)
      const other = { "idempotency-key": "another-key-of-128-bits" }
      assert.strictEqual(codeOf(yield* send("email/verify", body, other)), "invalid_token")
    })
  )

  it.effect("sets a password again with the same key, and refuses another password under it", () =>
    Effect.gen(function* () {
      const { inbox, logIn, post, send } = yield* signedUp("bea@example.com")
      yield* post("password/forgot", { email: "bea@example.com" })
      const { fragment } = yield* inbox.next("bea@example.com")
      const token = fragment.get("svc_reset")
      const next = "another horse battery"
      assert.strictEqual((yield* send("password/reset", { token, password: next })).status, 200)
      const session = yield* logIn("bea@example.com", next)
      assert.strictEqual((yield* send("password/reset", { token, password: next })).status, 200)
      const refreshToken = at(session.body, "refreshToken")
      const kept = yield* post("refresh", { refreshToken })
      assert.strictEqual(kept.status, 200, "the repeat signs nobody out")
      const changed = yield* send("password/reset", { token, password })
      assert.deepStrictEqual([changed.status, codeOf(changed)], [422, "idempotency_key_reused"])
      assert.strictEqual(codeOf(yield* logIn("bea@example.com", password)), "invalid_credentials")
    })
  )

  it.effect("removes an address again with the same key", () =>
    Effect.gen(function* () {
      const { mail, send } = yield* signedUp("cleo@example.com")
      const second = /#(svc_disown=[^\s"<&]+)/.exec(mail.text)?.[1] ?? ""
      const body = { token: new URLSearchParams(second).get("svc_disown") }
      for (let times = 0; times < 2; times++) {
        assert.strictEqual((yield* send("email/disown", body)).status, 200)
      }
    })
  )

  it.effect("refuses a banned player, also in a repeat", () =>
    Effect.gen(function* () {
      const { ban, mail, player, send } = yield* signedUp("dora@example.com")
      const body = { token: mail.fragment.get("svc_verify") }
      yield* send("email/verify", body)
      yield* ban(player.id)
      assert.strictEqual(codeOf(yield* send("email/verify", body)), "player_banned")
    })
  )
})
