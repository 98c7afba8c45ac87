/**
 * Config pushes that cost the service time: documents with as many problems as their size allows. And
 * documents that read otherwise than they are applied.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { decodeConfig } from "#rpc/config-document/document"
import { configLimits } from "#rpc/config-document/limits"
import { duplicateNames } from "#server/features/config/duplicate-names"
import { at, request } from "#testing/players"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../support/http-stack.ts"

const many = <A>(count: number, make: (index: number) => A) =>
  Array.from({ length: count }, (_, index) => make(index))

/** An object with `count` members that nothing knows. */
const junk = (count: number) => Object.fromEntries(many(count, (n) => [`junk${n}`, 1]))

/** Invalid documents close to the size limit. */
const worst = {
  numbers: { stats: many(90_000, () => 1) },
  objects: { stats: many(60_000, () => ({})) },
  modes: { multiplayer: { modes: many(9000, (n) => ({ key: `m${n}` })) } },
  features: { features: junk(16_000) },
  sections: junk(16_000),
  fields: { stats: many(128, (n) => ({ key: `k${n}`, ...junk(150) })) },
  languages: { stats: many(128, (n) => ({ key: `k${n}`, title: junk(150) })) },
  names: { ["x".repeat(200_000)]: 1 }
}

/** Of CPU time. A document of the size limit takes 20 ms; the most problems once took 900 ms. */
const slowMillis = 250

/** CPU time of this thread, which other processes of the machine do not take part in. */
const cpuMillis = Effect.sync(() => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1000
})

describe("an invalid config document", () => {
  for (const [name, document] of Object.entries(worst)) {
    it.live(
      `refuses an invalid config at once with at most ${configLimits.issuesMax + 1} problems: ${name}`,
      () =>
        Effect.gen(function* () {
          const refuse = Effect.flip(
            Effect.suspend(() => Effect.fromResult(decodeConfig(document)))
          )
          const times = yield* Effect.forEach(many(5, String), () =>
            Effect.gen(function* () {
              const before = yield* cpuMillis
              yield* refuse
              return (yield* cpuMillis) - before
            })
          )
          assert.isBelow(Math.min(...times), slowMillis)
          const { details, message } = yield* refuse
          assert.isAtMost(details.issues.length, configLimits.issuesMax + 1)
          assert.isBelow(JSON.stringify({ details, message }).length, 64 * 1024)
        })
    )
  }

  it("names a missing field although many unknown ones come before it", () => {
    const document = { stats: [{ ...junk(500), title: "Score" }] }
    const { details } = Result.getOrThrow(Result.flip(decodeConfig(document)))
    const paths = details.issues.map(({ path }) => path)
    assert.include(paths, "stats[0].junk99")
    assert.strictEqual(paths.length, configLimits.issuesMax + 1)
    const few = Result.getOrThrow(Result.flip(decodeConfig({ stats: [{ ...junk(3) }] })))
    assert.sameMembers(
      few.details.issues.map(({ path }) => path),
      ["stats[0].junk0", "stats[0].junk1", "stats[0].junk2", "stats[0].key"]
    )
  })
})

describe("duplicate names of a JSON text", () => {
  const pathsOf = (text: string) => duplicateNames(text, 100).map(({ path }) => path)

  it("finds duplicate names in every object of a JSON text with their paths, whatever their escapes", () => {
    assert.deepStrictEqual(pathsOf('{"a":1,"a":2}'), ["a"])
    assert.deepStrictEqual(pathsOf('{"a":[{"b":1},{"b":1,"c":{"d":1, "\\u0064":2}}]}'), [
      "a[1].c.d"
    ])
    assert.deepStrictEqual(pathsOf('{"a b":{"c":1},"a b":{}}'), ['["a b"]'])
  })

  it("reports no value, name of another object or part of a text as a duplicate name of a JSON text", () => {
    for (const text of [
      '{"a":"a","b":["a","a"],"c":{"a":{"a":1}}}',
      '[{"a":1},{"a":1}]',
      '{"a":"\\",\\"a\\":1","b":"{\\"b\\":1}"}',
      '"a"',
      "1"
    ]) {
      assert.deepStrictEqual(pathsOf(text), [], text)
    }
  })
})

layer(nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer)))("a pushed config", (it) => {
  it.effect(
    "refuses a pushed config with the paths of duplicate names and all other problems",
    () =>
      Effect.gen(function* () {
        const { development } = yield* makeTenants
        const push = Effect.fnUntraced(function* (text: string) {
          const { body, status } = yield* request(`${yield* addressOfNode}/v1/config`, {
            method: "PUT",
            headers: { "x-svc-key": development.secretKey },
            body: Buffer.from(text)
          })
          const issues = at(body, "error", "details", "issues")
          const paths = Array.isArray(issues) ? issues.map((issue) => at(issue, "path")) : []
          return { status, code: at(body, "error", "code"), paths }
        })
        const twice = '"features":{"saves":true,"saves":false}'
        const refused = { status: 400, code: "invalid_config" }
        assert.deepStrictEqual(yield* push(`{${twice}}`), { ...refused, paths: ["features.saves"] })
        assert.deepStrictEqual(yield* push(`{${twice},"version":2}`), {
          ...refused,
          paths: ["version", "features.saves"]
        })
        assert.strictEqual((yield* push('{"features":{"saves":true}}')).status, 200)
      })
  )
})
