/**
 * Faults under load, in short (`npm run test:chaos` is the long form): three runner processes on one
 * Postgres, apps that use the typed client and do nothing about a lost connection. See `chaos/run.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { rollingUpgrade } from "./rolling.ts"
import { chaos } from "./run.ts"

const sizes = { rooms: 3, players: 3, matched: 4, talkers: 3, savers: 2, counters: 2 }

/** Replayed by hand with `npm run test:chaos -- --short --seed 8`. */
const seed = 8

const starvedMillis = 250

const say = (line: string) => process.stdout.write(`${line}\n`)

describe("three runners under load", { timeout: 180_000 }, () => {
  it.live(
    "lose nothing that was acknowledged, whatever fails, and everybody is back by himself",
    () =>
      Effect.gen(function* () {
        const { violations } = yield* chaos({
          seed,
          short: true,
          faults: ["kill", "partition", "crash", "slow", "freeze", "restart"],
          say,
          sizes,
          retries: Number.POSITIVE_INFINITY,
          forgetMillis: 1500
        })
        assert.deepStrictEqual(violations, [])
      }).pipe(Effect.scoped)
  )

  it.live("are replaced one by one, and no app that calls once more notices", () =>
    Effect.gen(function* () {
      const { noticed, starved, violations, worst } = yield* rollingUpgrade(sizes, say)
      say(`silent for ${worst} ms at worst; no core for ${starved} ms`)
      assert.deepStrictEqual(violations, [])
      // A machine without a free core says nothing about how prompt the service is.
      if (starved < starvedMillis) assert.deepStrictEqual(noticed, [])
    }).pipe(Effect.scoped)
  )
})
