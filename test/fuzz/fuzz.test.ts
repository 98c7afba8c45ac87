/**
 * Random and hostile requests and frames against a running service, which must reply in its own error
 * format, log nothing, and return to its former memory. `npm run test:fuzz` runs any seed and size.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { inject } from "vitest"
import { fuzz } from "./run.ts"

/**
 * To repeat the run for memory: `npm run test:fuzz --` with
 * `--seed 8 --requests 16000 --frames 24000 --rounds 3 --lingering 8 --growth 2.5`. Caches fill in the first
 * rounds, by up to 7 MB in one; later ones changed memory by less than 2 MB. A list that keeps every
 * request (1.2 kB each) adds 3 to 8 MB in each round. One round compares nothing.
 */
const forms = {
  short: {
    seed: 8,
    requests: 3000,
    frames: 4500,
    rounds: 1,
    lingeringMax: 8,
    growthMaxBytes: Number.POSITIVE_INFINITY
  },
  memory: {
    seed: 8,
    requests: 16_000,
    frames: 24_000,
    rounds: 3,
    lingeringMax: 8,
    growthMaxBytes: 2.5e6
  },
  long: {
    seed: 8,
    requests: 12_000,
    frames: 100_000,
    rounds: 2,
    lingeringMax: 8,
    growthMaxBytes: 12e6
  }
} as const

const say = (line: string) => process.stdout.write(`${line}\n`)

describe("a running service under random input", { timeout: 2_400_000 }, () => {
  it.live("refuses invalid random input, spares bystanders and leaves nothing behind", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* fuzz({ ...forms[inject("form")], say }), [])
    })
  )

  it.live(
    "keeps no memory of invalid random input from round to round",
    () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* fuzz({ ...forms.memory, say }), [])
      }),
    { tags: "long" }
  )
})
