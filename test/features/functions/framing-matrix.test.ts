/**
 * Framings of requests to a function, over raw connections and through two runners: what reaches the
 * process is one request, the caller's, or nothing.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { casesOf, findings, runCases } from "../../support/passing/framing-cases.ts"
import { RecordedFunction } from "../../support/passing/recorded-function.ts"
import { takeRecords } from "../../support/passing/recorder.ts"
import { sampleSize } from "../../support/security/sizes.ts"

const patient = { excludeTestServices: true, timeout: "600 seconds" } as const

/** Cases of a framing and a method that differ in the answer, what follows and the forged call. */
const variants = sampleSize(5, 1)

const names = ["service", "app", "proxied", "proxiedApp"] as const

/** Every ways-th case of a way, so that all ways together have each case once. */
const shareOf = <A>(cases: ReadonlyArray<A>, index: number): ReadonlyArray<A> =>
  cases.filter((_, place) => place % sampleSize(1, names.length) === sampleSize(0, index))

layer(RecordedFunction.layer, patient)("requests with any framing", (it) => {
  for (const [index, name] of names.entries()) {
    it.effect(
      `reach a function as one request, the caller's, or not at all: ${name}`,
      () =>
        Effect.gen(function* () {
          const { players, url, ways } = yield* RecordedFunction
          const found: Array<string> = []
          for (let variant = 0; variant < variants; variant += 1) {
            const cases = shareOf(casesOf(ways[name], variant), index)
            const finished = yield* runCases(cases, players)
            found.push(...findings(finished, yield* takeRecords(url), players))
          }
          assert.deepStrictEqual(found, [])
        }),
      { tags: "sized", timeout: 600_000 }
    )
  }
})
