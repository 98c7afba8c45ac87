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

  it.effect(
    "lets a pull bring the switch into a pushed file, and a push say that it is missing",
    () =>
      Effect.gen(function* () {
        const { current, development, folder } = yield* setUp
        yield* configure(development, { stats: [{ key: "kills" }] })
        yield* folder.write("svc.config.json", { stats: [{ key: "kills" }] })
        assert.strictEqual((yield* folder.svc("feature on saves")).code, 0)
        const pushed = yield* folder.svc("config push")
        assert.strictEqual(pushed.code, 1)
        assert.match(pushed.stderr, /has changed[^]*features\.saves/)
        const pulled = yield* folder.svc("config pull")
        assert.strictEqual(pulled.code, 0, pulled.stderr)
        assert.deepStrictEqual(at(JSON.parse(yield* folder.read("svc.config.json")), "features"), {
          saves: true
        })
        assert.deepStrictEqual(yield* current, {
          stats: [{ key: "kills" }],
          features: { saves: true }
        })
      })
  )

  it.effect("pulls over a file that another tool pushed before a switch elsewhere", () =>
    Effect.gen(function* () {
      const { development, folder } = yield* setUp
      yield* configure(development, { audience: "kids" })
      yield* folder.write("svc.config.json", { audience: "kids" })
      yield* configure(development, { audience: "kids", features: { stats: true } })
      assert.strictEqual((yield* folder.svc("config pull")).code, 0)
      yield* folder.write("svc.config.json", { audience: "mixed" })
      assert.match((yield* folder.svc("config pull")).stderr, /never pushed/)
    })
  )
})
