/** `GET /v1/key`: what a key opens, for tools that keep keys under a name. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at, request } from "#testing/players"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Node)("key description", (it) => {
  it.effect("says kind, environment and project of each key, and refuses an unknown key", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { projectId, ...tenants } = yield* makeTenants
      for (const environment of ["development", "production"] as const) {
        for (const kind of ["publishable", "secret"] as const) {
          const key = tenants[environment][`${kind}Key`]
          const { body } = yield* request(`${url}/v1/key`, { headers: { "x-svc-key": key } })
          const slug = String(at(body, "project", "slug"))
          assert.match(slug, /^test-/)
          const project = { id: projectId, name: "test", slug }
          const prefix = key.slice(0, 8)
          assert.deepStrictEqual(body, { kind, prefix, environment, project })
        }
      }
      const unknown = yield* request(`${url}/v1/key`, { headers: { "x-svc-key": "sk_1" } })
      assert.strictEqual(unknown.status, 401)
    })
  )
})
