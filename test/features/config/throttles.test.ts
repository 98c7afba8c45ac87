/** Throttle of config pushes, on the test clock. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { request } from "#testing/players"
import {
  addressOfNode,
  makeTenants,
  nodeWith,
  SharedDatabase,
  type Tenant
} from "../../support/http-stack.ts"
import { codeOf } from "../../support/players.ts"

const Node = nodeWith({ SVC_THROTTLES: "on" }).pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Node)("throttles of config pushes", (it) => {
  it.effect("takes 30 config pushes to an environment within a minute, valid or not", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { development, production } = yield* makeTenants
      const push = ({ secretKey }: Tenant, body: unknown) =>
        request(`${url}/v1/config`, { method: "PUT", headers: { "x-svc-key": secretKey }, body })
      for (let n = 0; n < 30; n++) {
        const answer = yield* push(development, n % 2 === 0 ? {} : { unknown: n })
        assert.strictEqual(answer.status, n % 2 === 0 ? 200 : 400)
      }
      const limited = yield* push(development, {})
      assert.deepStrictEqual([limited.status, codeOf(limited)], [429, "rate_limited"])
      assert.strictEqual((yield* push(production, {})).status, 200)
    })
  )
})
