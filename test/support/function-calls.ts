/** Calls of the endpoints of Functions, for tests. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { request, type TestResponse, type TestTarget } from "#testing/players"

type Target = Pick<TestTarget, "url" | "secretKey">

/** Calls an endpoint below `functions` with the secret key. */
export const call = (
  { secretKey, url }: Target,
  method: string,
  path = "",
  body?: unknown
): Effect.Effect<TestResponse> =>
  request(`${url}/v1/admin/functions${path}`, {
    method,
    headers: { "x-svc-key": secretKey },
    ...(body === undefined ? {} : { body })
  })

export const base64 = (text: string): string => Buffer.from(text).toString("base64")

/** A deployment of one module, `main.js`. */
export const deploymentOf = (code: string, rest: object = {}) => ({
  mainModule: "main.js",
  modules: [{ name: "main.js", type: "esm", content: base64(code) }],
  bindings: [],
  vars: {},
  crons: [],
  ...rest
})

export const code = "export default { fetch: () => new Response('hello') }"

/** Enables Functions with limits. */
export const enableWith = Effect.fnUntraced(function* (target: Target, limits: object) {
  const answer = yield* call(target, "POST", "/enable", limits)
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
})

/** Enables Functions. */
export const enable = (target: Target) => enableWith(target, {})

/** Deploys one module. */
export const deploy = Effect.fnUntraced(function* (target: Target, rest: object = {}, text = code) {
  const answer = yield* call(target, "POST", "/deployments", deploymentOf(text, rest))
  assert.strictEqual(answer.status, 201, JSON.stringify(answer.body))
  return answer.body
})
