/** What the operator may do with developers: close sign-up, and let one in who cannot sign in. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { at, request, type TestResponse } from "#testing/players"
import { addressOfNode, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { operate } from "../../support/operate.ts"

const act = (...words: ReadonlyArray<string>) =>
  Effect.flatMap(SharedDatabase, (url) => operate(Redacted.value(url), ...words))

const password = "correct horse"

const send = (method: string, path: string, more: Parameters<typeof request>[1] = {}) =>
  Effect.flatMap(addressOfNode, (url) => request(`${url}/v1${path}`, { method, ...more }))

const signUp = (email: string) => send("POST", "/developers/signup", { body: { email, password } })

const signIn = (email: string, given: string) =>
  send("POST", "/developers/login", { body: { email, password: given } })

const outcome = ({ body, status }: TestResponse) => at(body, "error", "code") ?? status

const policy = Effect.map(send("GET", "/platform/info"), ({ body }) => at(body, "signups"))

const entries = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`select action, actor_id, target_id from audit order by id`
  return rows.map((row) => Object.values(row))
})

const Open = nodeWith({ SVC_SIGNUPS: "open" }).pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Open)("the operator's commands for sign-up", (it) => {
  it.effect("close sign-up for developers at once, until it is left to the settings again", () =>
    Effect.gen(function* () {
      assert.strictEqual(outcome(yield* signUp("ada@example.com")), 200)
      assert.match(yield* act("signups", "status"), /^Sign-up follows SVC_SIGNUPS/)
      assert.match(yield* act("signups", "close"), /^Sign-up is closed/)
      assert.strictEqual(outcome(yield* signUp("bob@example.com")), "signups_closed")
      assert.strictEqual(outcome(yield* signIn("ada@example.com", password)), 200)
      assert.strictEqual(yield* policy, "closed")
      assert.match(yield* act("signups", "status"), /^Sign-up is closed/)
      assert.match(yield* act("signups", "close"), /Nothing was changed/)
      assert.match(yield* act("signups", "open"), /^Sign-up follows SVC_SIGNUPS/)
      assert.strictEqual(outcome(yield* signUp("bob@example.com")), 200)
      assert.strictEqual(yield* policy, "open")
      assert.deepStrictEqual(yield* entries, [
        ["signups.close", "operator", "signups"],
        ["signups.open", "operator", "signups"]
      ])
    })
  )
})

layer(Open)("the operator's command for a developer's password", (it) => {
  it.effect("prints a new password once, and ends all sessions of the developer alone", () =>
    Effect.gen(function* () {
      const ada = yield* signUp("Ada@Example.com")
      const bob = yield* signUp("bob@example.com")
      const id = String(at(ada.body, "developer", "id"))
      const me = ({ body }: TestResponse) => {
        const authorization = `Bearer ${String(at(body, "token"))}`
        return Effect.map(send("GET", "/developers/me", { headers: { authorization } }), outcome)
      }
      const made = yield* act("developer", "reset-password", "ada@example.com")
      assert.match(made, /^[\w-]{43}$/)
      assert.strictEqual(yield* me(ada), "unauthorized")
      assert.strictEqual(yield* me(bob), 200)
      assert.strictEqual(outcome(yield* signIn("ada@example.com", password)), "invalid_credentials")
      assert.strictEqual(outcome(yield* signIn("ada@example.com", made)), 200)
      const again = yield* act("developer", "reset-password", id)
      assert.notStrictEqual(again, made)
      assert.strictEqual(outcome(yield* signIn("ada@example.com", made)), "invalid_credentials")
      assert.strictEqual(outcome(yield* signIn("ada@example.com", again)), 200)
      assert.deepStrictEqual(yield* entries, [
        ["developer.resetPassword", "operator", id],
        ["developer.resetPassword", "operator", id]
      ])
      const sql = yield* SqlClient.SqlClient
      const written = JSON.stringify(yield* sql`select * from audit`)
      assert.notInclude(written, again)
      const unknown = yield* act("developer", "reset-password", "nobody@example.com")
      assert.match(unknown, /^failed: There is no developer nobody@example.com/)
    })
  )
})
