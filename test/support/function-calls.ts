/** Calls of the endpoints of Functions, for tests. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, request, type TestResponse, type TestTarget } from "#testing/players"

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

const keeping = `export default { async fetch(_, { FILES, KEPT }) {
  await Promise.all([FILES, KEPT].map((store) => store.put("a", "1")))
  return new Response()
} }`

const stores = [
  { name: "KEPT", type: "kv" },
  { name: "FILES", type: "files" }
]

/** Deploys functions that have stored a key in `KEPT`, and a file in `FILES`. */
export const deployStores = Effect.fnUntraced(function* (
  target: Target
): Effect.fn.Return<unknown> {
  yield* enable(target)
  const { pathname } = new URL(
    String(at(yield* deploy(target, { bindings: stores }, keeping), "url"))
  )
  return yield* Effect.promise(() => fetch(`${target.url}${pathname}`))
})

/** The endpoints of stores below a mount, each with a function that makes its target. */
export const storeTargets = (mount: string) =>
  Object.fromEntries(
    ["GET", "DELETE"].flatMap((method) =>
      [
        ["kv", "KEPT"],
        ["files", "FILES"]
      ].map(([kind, binding = ""]) => [
        `${method} ${mount}/${kind}/:binding`,
        (target: Target) => Effect.as(deployStores(target), { binding })
      ])
    )
  )
