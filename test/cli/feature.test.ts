/** `svc feature on` and `svc feature off` against a real service. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at, request } from "#testing/players"
import { makeFolder } from "../support/cli/svc.ts"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: development.secretKey })
  const headers = { "x-svc-key": development.secretKey }
  const current = Effect.map(request(`${url}/v1/config`, { headers }), ({ body }) => body)
  return { development, folder, current }
})

layer(Node)("svc feature", (it) => {
  it.effect("switches several features and news at once, and leaves the rest as it is", () =>
    Effect.gen(function* () {
      const { current, development, folder } = yield* setUp
      const stats = [{ key: "kills" }]
      yield* configure(development, { stats, features: { stats: true } })
      const on = yield* folder.svc("feature on realtimeChannels voice --json")
      assert.strictEqual(on.code, 0, on.stderr)
      assert.deepStrictEqual(at(JSON.parse(on.stdout), "changed"), [
        "features.realtimeChannels",
        "features.voice"
      ])
      const off = yield* folder.svc("feature off news voice")
      assert.strictEqual(off.code, 0, off.stderr)
      assert.match(off.stdout, /^Off in .*: news, voice\./)
      assert.deepStrictEqual(yield* current, {
        stats,
        features: { stats: true, realtimeChannels: true, voice: false },
        svcNews: { optIn: false }
      })
    })
  )

  it.effect("says what a feature needs, and changes nothing then", () =>
    Effect.gen(function* () {
      const { current, folder } = yield* setUp
      const before = yield* current
      const refused = yield* folder.svc("feature on voice")
      assert.strictEqual(refused.code, 1)
      assert.match(refused.stderr, /features\.voice: .*realtimeChannels/)
      assert.deepStrictEqual(yield* current, before)
      assert.strictEqual((yield* folder.svc("feature on voices")).code, 2)
      assert.strictEqual((yield* folder.svc("feature on")).code, 2)
    })
  )
})
