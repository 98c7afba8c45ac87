/** Opt-in for news by email: availability and stored choices. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { at, guest, request, type TestPlayer, type TestTarget } from "#testing/players"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"
import { codeOf, play } from "../../support/moderation-calls.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

/** Creates an environment with a config and a player. */
const playerOf = Effect.fnUntraced(function* (document: object) {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  yield* configure(development, document)
  const target: TestTarget = { url, ...development }
  return { target, tenant: development, ada: yield* guest(target, "Ada") }
})

const enabled = ({ publishableKey, url }: TestTarget) =>
  Effect.map(
    request(`${url}/v1/news/opt-in`, { headers: { "x-svc-key": publishableKey } }),
    ({ body }) => body
  )

const choose = (target: TestTarget, player: TestPlayer, optIn: unknown) =>
  play(target, player, "PUT", "news/opt-in", { optIn })

/** The stored choice of a player. */
const stored = Effect.fnUntraced(function* ({ id }: TestPlayer) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`select news_opt_in, news_chosen_at from players where id = ${id}`
  return rows[0]?.["newsOptIn"] ?? null
})

layer(Node)("the news opt-in", (it) => {
  it.effect("offers news by default and stores the choice with its time", () =>
    Effect.gen(function* () {
      const { ada, target } = yield* playerOf({})
      assert.deepStrictEqual(yield* enabled(target), { enabled: true })
      assert.isNull(yield* stored(ada))
      for (const optIn of [true, false, true]) {
        const answer = yield* choose(target, ada, optIn)
        assert.strictEqual(answer.status, 200)
        assert.deepStrictEqual(answer.body, { enabled: true, optIn })
        assert.strictEqual(yield* stored(ada), optIn)
      }
    })
  )

  it.effect("stores no choice when news is disabled, in apps for kids, and for children", () =>
    Effect.gen(function* () {
      for (const [document, offered] of [
        [{ svcNews: { optIn: false } }, false],
        [{ audience: "kids" }, false],
        [{ audience: "mixed" }, true]
      ] as const) {
        const { ada, target } = yield* playerOf(document)
        assert.deepStrictEqual(yield* enabled(target), { enabled: offered })
        const answer = yield* choose(target, ada, true)
        assert.deepStrictEqual(answer.body, { enabled: false, optIn: false })
        assert.isNull(yield* stored(ada), JSON.stringify(document))
      }
    })
  )

  it.effect("accepts the choice of a player who declared an age above the child band", () =>
    Effect.gen(function* () {
      const { ada, target } = yield* playerOf({ audience: "mixed" })
      yield* play(target, ada, "PUT", "social/age", { band: "teen" })
      assert.deepStrictEqual((yield* choose(target, ada, true)).body, {
        enabled: true,
        optIn: true
      })
      assert.isTrue(yield* stored(ada))
    })
  )

  it.effect("keeps an earlier choice while news is disabled", () =>
    Effect.gen(function* () {
      const { ada, target, tenant } = yield* playerOf({})
      yield* choose(target, ada, true)
      yield* configure(tenant, { svcNews: { optIn: false } })
      assert.strictEqual(at((yield* choose(target, ada, false)).body, "enabled"), false)
      assert.isTrue(yield* stored(ada))
    })
  )

  it.effect("accepts only a boolean from a signed-in player", () =>
    Effect.gen(function* () {
      const { ada, target } = yield* playerOf({})
      for (const optIn of ["yes", 1, null, undefined]) {
        assert.strictEqual(codeOf(yield* choose(target, ada, optIn)), "invalid_request")
      }
      const nobody = { ...ada, accessToken: "nonsense" }
      assert.strictEqual(codeOf(yield* choose(target, nobody, true)), "unauthorized")
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from players where id = ${ada.id}`
      assert.strictEqual(codeOf(yield* choose(target, ada, true)), "not_found")
    })
  )
})
