/**
 * External sign-in by the browser, all the way, at a real OpenID provider in the shape of each of the
 * four (spec sections 3, 4.1 and 5, rules 9 to 11; decisions 3.2.6).
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { at, guest, request } from "#src/testing/players"
import { codeOf } from "./developers/asking.ts"
import { addressOfNode } from "./http/stack.ts"
import {
  begin,
  call,
  challengeOf,
  comeBack,
  exchange,
  makeApp,
  newBrowser,
  outcomeOf,
  Providers,
  redirectUrl,
  signIn,
  summaryOf,
  verifier,
  World
} from "./oauth/world.ts"

const shapes = [
  [
    "google",
    { name: "Ada Lovelace", email: "ada@example.com", emailVerified: true },
    "Ada Lovelace"
  ],
  ["apple", { email: "relay@example.com", emailVerified: true }, /^Player-/],
  ["discord", { name: "Ada", username: "ada42", email: "ada@example.com" }, "Ada"],
  ["x", { name: "Ada on X", username: "ada_x" }, "Ada on X"]
] as const

layer(World(), { timeout: "60 seconds", excludeTestServices: true })("external sign-in", (it) => {
  it.effect.each(shapes)("goes all the way with %s", ([name, account, shown]) =>
    Effect.gen(function* () {
      const app = yield* makeApp
      const sql = yield* SqlClient.SqlClient
      const { [name]: provider } = yield* Providers
      provider.accounts.set("ada", account)
      const first = summaryOf(yield* signIn(app, name, "ada"))
      assert.deepInclude(first, { status: 200, isGuest: false, provider: name, linked: false })
      assert.strictEqual(first.methods, JSON.stringify([{ provider: name }]))
      if (typeof shown === "string") assert.strictEqual(first.displayName, shown)
      else assert.match(String(first.displayName), shown)
      const again = summaryOf(yield* signIn(app, name, "ada"))
      assert.strictEqual(again.id, first.id)
      const rows = yield* sql`
        select subject, email, email_verified, username, password_hash from identities
        where environment_id = ${app.environmentId}`
      assert.deepStrictEqual(rows, [
        {
          subject: "ada",
          email: "email" in account ? account.email : null,
          emailVerified: "emailVerified" in account,
          username: "username" in account ? account.username : null,
          passwordHash: null
        }
      ])
    })
  )
})
