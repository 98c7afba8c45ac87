/**
 * Requests and frames that nobody means well with, in short (`npm run test:fuzz` is the long form): a
 * running service answers all of them in its own words, and stays as it was. See `fuzz/run.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fuzz } from "./run.ts"

/** Replayed by hand with `npm run test:fuzz -- --hasty --seed 8 --requests 10000 --frames 100000`. */
const options = { seed: 8, requests: 10_000, frames: 100_000, patient: false } as const

const say = (line: string) => process.stdout.write(`${line}\n`)

describe("a running service under a storm of input", { timeout: 600_000 }, () => {
  it.live("refuses what is wrong in its own words, and its memory and neighbours do not mind", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* fuzz({ ...options, say }), [])
    })
  )
})
