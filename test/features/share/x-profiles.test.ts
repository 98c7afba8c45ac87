/** X profiles: refreshed at each sign-in, seen by others only where the player wants it. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { at, guest, request } from "#testing/players"
import { addressOfNode, configure, type Tenant } from "../../support/http-stack.ts"
import { ban, codeOf, operate, play } from "../../support/moderation-calls.ts"
import { makeApp, OAuthNodeLive, Providers, signIn } from "../../support/oauth/oauth-harness.ts"

const picture = "https://pbs.example/ada.png"
const ada = { name: "Ada on X", username: "ada_x", picture }

/** Signs in with X; returns the player's id and token. */
const signInWithX = Effect.fnUntraced(function* (app: Tenant, account: object) {
  const { x } = yield* Providers
  x.accounts.set("ada", account)
  const { body } = yield* signIn(app, "x", "ada")
  return { id: String(at(body, "player", "id")), accessToken: String(at(body, "accessToken")) }
})

const targetOf = (app: Tenant) => Effect.map(addressOfNode, (url) => ({ url, ...app }))

const lookUp = Effect.fnUntraced(function* (app: Tenant, ids: string) {
  const { publishableKey, url } = yield* targetOf(app)
  return yield* request(`${url}/v1/players/x-profiles?ids=${ids}`, {
    headers: { "x-svc-key": publishableKey }
  })
})

layer(OAuthNodeLive(), { timeout: "120 seconds", excludeTestServices: true })(
  "an X profile",
  (it) => {
    it.effect("hides an X profile until the player shows it, and follows the account at X", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const target = yield* targetOf(app)
        const player = yield* signInWithX(app, ada)
        const own = yield* play(target, player, "GET", "players/me/x-profile")
        assert.deepStrictEqual(own.body, {
          username: "ada_x",
          name: "Ada on X",
          avatarUrl: picture,
          visible: false
        })
        assert.deepStrictEqual((yield* lookUp(app, player.id)).body, { profiles: {} })
        const shown = yield* play(target, player, "PUT", "players/me/x-profile", { visible: true })
        assert.isTrue(shown.body.visible)
        yield* signInWithX(app, { ...ada, name: "Countess" })
        const { body } = yield* lookUp(app, `unknown,${player.id}`)
        assert.deepStrictEqual(body, {
          profiles: { [player.id]: { username: "ada_x", name: "Countess", avatarUrl: picture } }
        })
        yield* play(target, player, "PUT", "players/me/x-profile", { visible: false })
        assert.deepStrictEqual((yield* lookUp(app, player.id)).body, { profiles: {} })
      })
    )

    it.effect(
      "hides the X profile of a player who later declares a child's age, and refuses to show it again",
      () =>
        Effect.gen(function* () {
          const app = yield* makeApp
          const target = yield* targetOf(app)
          const player = yield* signInWithX(app, ada)
          yield* play(target, player, "PUT", "players/me/x-profile", { visible: true })
          yield* play(target, player, "PUT", "social/age", { band: "child" })
          assert.deepStrictEqual((yield* lookUp(app, player.id)).body, { profiles: {} })
          const again = yield* play(target, player, "PUT", "players/me/x-profile", {
            visible: true
          })
          assert.isFalse(again.body.visible)
        })
    )

    it.effect("hides the X profile of a banned player until the ban is lifted", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const target = yield* targetOf(app)
        const player = yield* signInWithX(app, ada)
        yield* play(target, player, "PUT", "players/me/x-profile", { visible: true })
        const before = (yield* lookUp(app, player.id)).body
        assert.isDefined(at(before, "profiles", player.id))
        yield* ban(target, player.id)
        assert.deepStrictEqual((yield* lookUp(app, player.id)).body, { profiles: {} })
        yield* operate(target, "POST", `players/${player.id}/unban`)
        assert.deepStrictEqual((yield* lookUp(app, player.id)).body, before)
      })
    )

    it.effect("drops a picture that is no https address", () =>
      Effect.gen(function* () {
        const app = yield* makeApp
        const target = yield* targetOf(app)
        const player = yield* signInWithX(app, { ...ada, picture: "javascript:alert(1)" })
        const own = yield* play(target, player, "GET", "players/me/x-profile")
        assert.isNull(own.body.avatarUrl)
      })
    )

    it.effect(
      "exports an X profile with the player's data, and shows it in no other environment",
      () =>
        Effect.gen(function* () {
          const app = yield* makeApp
          const other = yield* makeApp
          const target = yield* targetOf(app)
          const player = yield* signInWithX(app, ada)
          yield* play(target, player, "PUT", "players/me/x-profile", { visible: true })
          const exported = yield* play(target, player, "GET", "players/me/export")
          assert.strictEqual(exported.body?.xProfile?.username, "ada_x")
          assert.deepStrictEqual((yield* lookUp(other, player.id)).body, { profiles: {} })
        })
    )

    it.effect(
      "answers identity_not_linked to a player without X, and refuses a lookup of more than 100 ids",
      () =>
        Effect.gen(function* () {
          const app = yield* makeApp
          yield* configure(app, {})
          const target = yield* targetOf(app)
          const player = yield* guest(target, "Guest")
          const own = yield* play(target, player, "GET", "players/me/x-profile")
          const shown = yield* play(target, player, "PUT", "players/me/x-profile", {
            visible: true
          })
          for (const answer of [own, shown]) {
            assert.strictEqual(answer.status, 404)
            assert.strictEqual(codeOf(answer), "identity_not_linked")
          }
          const ids = Array.from({ length: 101 }, (_, index) => `pl_${index}`).join(",")
          assert.strictEqual(codeOf(yield* lookUp(app, ids)), "invalid_request")
          const malformed = yield* lookUp(app, "%00,,pl_x%00,%F0%9F%98%80")
          assert.deepStrictEqual(malformed.body, { profiles: {} })
        })
    )
  }
)
