/** `GET` and `PATCH /v1/players/me`. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { at, guest, request, type TestTarget } from "#testing/players"
import {
  addressOfNode,
  makeTenants,
  nodeWith,
  SharedDatabase,
  type Tenant
} from "../../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const targetOf = (url: string, { publishableKey, secretKey }: Tenant): TestTarget => ({
  url,
  publishableKey,
  secretKey
})

const targets = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production } = yield* makeTenants
  return { development: targetOf(url, development), production: targetOf(url, production) }
})

/** Reads the signed-in player, or updates it with a body. */
const me = (target: TestTarget, accessToken: string, body?: unknown) =>
  request(`${target.url}/v1/players/me`, {
    headers: { "x-svc-key": target.publishableKey, authorization: `Bearer ${accessToken}` },
    ...(body === undefined ? {} : { method: "PATCH", body })
  })

const codeOf = (answer: { readonly body: unknown }) => at(answer.body, "error", "code")

layer(Node)("players", (it) => {
  it.effect("returns every field of the signed-in player", () =>
    Effect.gen(function* () {
      const { development } = yield* targets
      const ada = yield* guest(development, "Ada")
      const answer = yield* me(development, ada.accessToken)
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(answer.body, {
        player: {
          id: ada.id,
          displayName: "Ada",
          isGuest: true,
          createdAt: "1970-01-01T00:00:00.000Z",
          identities: [{ provider: "guest" }],
          emailVerified: false
        }
      })
    })
  )

  it.effect("normalizes and trims a name of 1 to 32 characters without control characters", () =>
    Effect.gen(function* () {
      const { development } = yield* targets
      const ada = yield* guest(development, "  Ada\u0301  ")
      const nameOf = (answer: { readonly body: unknown }) =>
        at(answer.body, "player", "displayName")
      assert.strictEqual(nameOf(yield* me(development, ada.accessToken)), "Ad\u00e1")
      for (const name of ["x", "🦊".repeat(32), "  Zoë  ", "a b"]) {
        const answer = yield* me(development, ada.accessToken, { displayName: name })
        assert.strictEqual(nameOf(answer), name.trim())
      }
      for (const name of [
        "",
        "   ",
        "x".repeat(33),
        "🦊".repeat(33),
        "a\u0000b",
        "a\nb",
        7,
        null
      ]) {
        const answer = yield* me(development, ada.accessToken, { displayName: name })
        assert.strictEqual(answer.status, 400)
        assert.strictEqual(at(answer.body, "error", "details", "issues", 0, "path"), "displayName")
      }
      assert.strictEqual(nameOf(yield* me(development, ada.accessToken)), "a b")
    })
  )

  it.effect("ignores changes of all fields of a player but the display name", () =>
    Effect.gen(function* () {
      const { development } = yield* targets
      const ada = yield* guest(development, "Ada")
      const before = yield* me(development, ada.accessToken)
      const answer = yield* me(development, ada.accessToken, {
        displayName: "Ada",
        id: "pl_0",
        isGuest: false,
        emailVerified: true,
        environmentId: "env_0",
        createdAt: "2000-01-01T00:00:00.000Z",
        identities: []
      })
      assert.deepStrictEqual(answer.body, before.body)
    })
  )

  it.effect("requires an unexpired token of the same environment to read a player", () =>
    Effect.gen(function* () {
      const { development, production } = yield* targets
      const ada = yield* guest(development)
      assert.strictEqual(codeOf(yield* me(production, ada.accessToken)), "unauthorized")
      assert.strictEqual(codeOf(yield* me(development, "")), "unauthorized")
      assert.strictEqual(codeOf(yield* me(development, "garbled")), "unauthorized")
      yield* TestClock.adjust("15 minutes")
      const late = yield* me(development, ada.accessToken)
      assert.strictEqual(late.status, 401)
      assert.strictEqual(codeOf(late), "token_expired")
    })
  )

  it.effect("answers unauthorized to a valid token of a deleted player", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { development } = yield* targets
      const ada = yield* guest(development)
      yield* sql`delete from players where id = ${ada.id}`
      assert.strictEqual(codeOf(yield* me(development, ada.accessToken)), "unauthorized")
      assert.strictEqual(
        codeOf(yield* me(development, ada.accessToken, { displayName: "Ada" })),
        "unauthorized"
      )
    })
  )
})
