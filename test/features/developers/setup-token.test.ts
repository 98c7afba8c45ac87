/** The setup token of production, which the first developer account needs. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { announceSetupToken } from "#server/features/developers/setup-token"
import { at, request } from "#testing/players"
import { makeInvite } from "../../support/invites.ts"
import { addressOfNode, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { codeOf } from "../../support/bodies.ts"

const nodeOf = (env: Readonly<Record<string, string>>) =>
  nodeWith(env).pipe(Layer.provideMerge(SharedDatabase.layer))

const password = "correct horse"

const signup = (email: string, setupToken?: string, more: object = {}) =>
  Effect.flatMap(addressOfNode, (url) =>
    request(`${url}/v1/developers/signup`, { body: { email, password, setupToken, ...more } })
  )

const isRequired = Effect.gen(function* () {
  const { body } = yield* request(`${yield* addressOfNode}/v1/platform/info`)
  return at(body, "setupTokenRequired")
})

/** The lines that a start of the service logs about the setup token. */
const announce = Effect.gen(function* () {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => void lines.push(String(message)))
  yield* Effect.provide(announceSetupToken, Logger.layer([logger]))
  return lines
})

const token = "a token of the operator"
const production = { NODE_ENV: "production" }

layer(nodeOf({ ...production, SVC_SETUP_TOKEN: token }))("SVC_SETUP_TOKEN", (it) => {
  it.effect(
    "requires SVC_SETUP_TOKEN for the first developer in production, and admits no other with it",
    () =>
      Effect.gen(function* () {
        assert.isTrue(yield* isRequired)
        const [line = ""] = yield* announce
        assert.include(line, "SVC_SETUP_TOKEN")
        assert.notInclude(line, token)
        for (const wrong of [undefined, "", "a token of a stranger"]) {
          const refused = yield* signup("stranger@example.com", wrong)
          assert.deepStrictEqual([refused.status, codeOf(refused)], [403, "signups_closed"])
          assert.include(String(at(refused.body, "error", "message")), "setupToken")
        }
        const answers = yield* Effect.forEach(
          ["a@example.com", "b@example.com", "c@example.com"],
          (email) => signup(email, token),
          { concurrency: "unbounded" }
        )
        assert.sameMembers(answers.map(codeOf), ["ok", "signups_closed", "signups_closed"])
        assert.isFalse(yield* isRequired)
        assert.deepStrictEqual(yield* announce, [])
      })
  )
})

layer(nodeOf({ ...production, SVC_SIGNUPS: "invite" }))(
  "a setup token that the first start makes",
  (it) => {
    it.effect(
      "prints a generated setup token once, stores its hash, and takes it, not the first invite code",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* makeInvite("code-of-9")
          const starts = yield* Effect.all([announce, announce, announce], { concurrency: 3 })
          const printed = starts.flat().filter((line) => line.includes("printed only this once"))
          assert.lengthOf(printed, 1)
          const made = /once: ([A-Za-z0-9_-]{43}) /.exec(printed[0] ?? "")?.[1] ?? ""
          const rows = yield* sql`select * from setup_token`
          assert.lengthOf(rows, 1)
          assert.notInclude(JSON.stringify(rows), made)
          const invited = yield* signup("stranger@example.com", undefined, {
            inviteCode: "code-of-9"
          })
          assert.strictEqual(codeOf(invited), "signups_closed")
          assert.strictEqual(codeOf(yield* signup("owner@example.com", made)), "ok")
          assert.lengthOf(yield* sql`select * from setup_token`, 0)
          const second = yield* signup("second@example.com", made)
          assert.strictEqual(codeOf(second), "invalid_invite_code")
          const guest = yield* signup("guest@example.com", undefined, { inviteCode: "code-of-9" })
          assert.strictEqual(codeOf(guest), "ok")
        })
    )
  }
)
