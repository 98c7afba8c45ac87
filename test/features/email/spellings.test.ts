/** Spellings of one address: its domain in its own script and in ASCII. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { at } from "#testing/players"
import { codeOf, makeEmailProject, NodeLive, password } from "../../support/email/email-harness.ts"

layer(NodeLive())("spellings of an address", (it) => {
  it.effect("a player has one account for a domain and its ASCII form, whichever came first", () =>
    Effect.gen(function* () {
      const { logIn, post, signUp } = yield* makeEmailProject
      yield* signUp("eva@bücher.example")
      for (const email of ["eva@xn--bcher-kva.example", "EVA@BÜCHER.example"]) {
        const again = yield* post("email/signup", { email, password })
        assert.deepStrictEqual([again.status, codeOf(again)], [409, "email_taken"])
        assert.strictEqual((yield* logIn(email)).status, 200)
      }
      yield* signUp("max@xn--bcher-kva.example")
      const again = yield* post("email/signup", { email: "max@bücher.example", password })
      assert.strictEqual(codeOf(again), "email_taken")
    })
  )

  it.effect(
    "a player signs in to accounts that an earlier release stored, also to two of one mailbox",
    () =>
      Effect.gen(function* () {
        const { guest, logIn, post, signUp } = yield* makeEmailProject
        const sql = yield* SqlClient.SqlClient
        const store = (id: string, subject: string) => sql`
        update identities set subject = ${subject}, email = ${subject} where player_id = ${id}`
        const [ascii, unicode] = ["uli@xn--bcher-kva.example", "uli@bücher.example"]
        const older = yield* signUp("older@example.com")
        yield* store(older.id, unicode)
        const playerOf = (email: string) =>
          Effect.map(logIn(email), ({ body }) => at(body, "player", "id"))
        for (const email of [unicode, ascii]) {
          assert.strictEqual(yield* playerOf(email), older.id)
          const taken = yield* post("email/signup", { email, password })
          assert.strictEqual(codeOf(taken), "email_taken")
          const link = yield* post("link/email", { email, password }, yield* guest)
          assert.strictEqual(codeOf(link), "identity_already_linked")
        }
        const newer = yield* signUp("newer@example.com")
        yield* store(newer.id, ascii)
        assert.strictEqual(yield* playerOf(unicode), older.id)
        assert.strictEqual(yield* playerOf(ascii), newer.id)
        const odd = yield* signUp("odd@example.com")
        yield* store(odd.id, "odd@ex..com")
        assert.strictEqual(yield* playerOf("odd@ex..com"), odd.id)
      })
  )
})
