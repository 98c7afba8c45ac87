/** Sign-ins with a provider whose answer was lost, in the browser and natively. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { at, request } from "#testing/players"
import { addressOfNode, type Tenant } from "../../support/http-stack.ts"
import { codeOf } from "../../support/developer-requests.ts"
import {
  completeFlow,
  makeApp,
  makeToken,
  OAuthNodeLive,
  verifier
} from "../../support/oauth/oauth-harness.ts"

const key = "a-key-of-128-random-bits"

const post = Effect.fnUntraced(function* (
  app: Tenant,
  path: string,
  body: object,
  idempotencyKey = key
) {
  const url = yield* addressOfNode
  const headers = { "x-svc-key": app.publishableKey, "idempotency-key": idempotencyKey }
  return yield* request(`${url}/v1/auth/${path}`, { headers, body })
})

const operate = Effect.fnUntraced(function* (app: Tenant, path: string, body: object) {
  const url = yield* addressOfNode
  return yield* request(`${url}/v1/admin/${path}`, {
    headers: { "x-svc-key": app.secretKey },
    body
  })
})

layer(OAuthNodeLive(), { timeout: "120 seconds" })("a sign-in with a provider", (it) => {
  /** The requests of one sign-in by each way, which spend their secret. */
  const ways = Effect.fnUntraced(function* (account: string) {
    const app = yield* makeApp
    const { code } = yield* completeFlow(app, "google", account)
    const token = yield* makeToken("google", `native-${account}`)
    return [
      [app, "oauth/exchange", { code, verifier }, "invalid_code"],
      [app, "oauth/google/native", token, "invalid_token"]
    ] as const
  })

  it.effect("gives the same session again to the same key, and nothing to another", () =>
    Effect.gen(function* () {
      for (const [app, path, body, spent] of yield* ways("ada")) {
        const first = yield* post(app, path, body)
        assert.strictEqual(first.status, 200)
        const again = yield* post(app, path, body)
        for (const name of ["refreshToken", "player", "provider", "linked"]) {
          assert.deepStrictEqual(at(again.body, name), at(first.body, name), `${path} ${name}`)
        }
        assert.strictEqual(codeOf(yield* post(app, path, body, `another-${key}`)), spent)
        assert.strictEqual(codeOf(yield* post(app, path, body, "short")), "invalid_idempotency_key")
      }
    })
  )

  it.effect("gives 16 requests at once one session", () =>
    Effect.gen(function* () {
      for (const [app, path, body] of yield* ways("bea")) {
        const answers = yield* Effect.forEach(
          Array.from({ length: 16 }),
          () => post(app, path, body),
          { concurrency: 16 }
        )
        const tokens = answers.map((answer) => at(answer.body, "refreshToken"))
        assert.isString(tokens[0])
        assert.lengthOf(new Set(tokens), 1)
      }
    })
  )

  it.effect(
    "gives nothing again after a refresh, a logout, a ban or a deletion of its session",
    () =>
      Effect.gen(function* () {
        const ends = {
          refresh: (app: Tenant, answer: object) =>
            post(app, "refresh", { refreshToken: at(answer, "refreshToken") }),
          logout: (app: Tenant, answer: object) =>
            post(app, "logout", { refreshToken: at(answer, "refreshToken") }),
          ban: (app: Tenant, answer: object) =>
            operate(app, `players/${String(at(answer, "player", "id"))}/ban`, { reason: "test" }),
          delete: (app: Tenant, answer: object) =>
            operate(app, `players/${String(at(answer, "player", "id"))}/delete`, {})
        }
        for (const [end, run] of Object.entries(ends)) {
          for (const [app, path, body, spent] of yield* ways(`end-${end}`)) {
            const first = yield* post(app, path, body)
            assert.strictEqual((yield* run(app, first.body as object)).status, 200)
            const again = yield* post(app, path, body)
            assert.strictEqual(
              codeOf(again),
              end === "ban" ? "player_banned" : spent,
              `${end} ${path}`
            )
          }
        }
      })
  )
})
