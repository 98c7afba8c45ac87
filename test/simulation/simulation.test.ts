/**
 * Simulations of a cluster, each from a seed (see `simulation/simulation.ts`): players on several runners,
 * with runners killed, stopped, frozen and partitioned, and a database that is slow, away or silent.
 *
 * `SVC_SIMULATION_SEED=7 npx vitest run --project simulation` replays one seed and prints its log;
 * `SVC_SIMULATION_SEEDS` sets how many run.
 */
import { availableParallelism } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { Config, Effect, Option } from "effect"
import { inject } from "vitest"
import { runSimulations } from "./runs.ts"

const seedCounts = { short: 40, long: 1000 }

const settings = Config.all({
  seed: Config.option(Config.Int("SVC_SIMULATION_SEED")),
  seeds: Config.option(Config.Int("SVC_SIMULATION_SEEDS"))
})

describe("a simulated cluster under faults", { timeout: 600_000 }, () => {
  it.live("loses no acknowledged change, seats no player twice and agrees in the end", () =>
    Effect.gen(function* () {
      const { seed, seeds } = yield* settings
      const range = Option.match(seed, {
        onNone: () => ({
          first: 1,
          count: Option.getOrElse(seeds, () => seedCounts[inject("form")])
        }),
        onSome: (first) => ({ first, count: 1 })
      })
      const workers = Math.min(availableParallelism(), range.count)
      const outcome = yield* runSimulations({ ...range, workers, server: inject("postgres") })
      for (const { log, seed: failed } of outcome.failed) {
        yield* Effect.logError(`seed ${failed}\n${log}`)
      }
      if (Option.isSome(seed)) yield* Effect.logInfo(outcome.log)
      yield* Effect.logInfo(outcome.summary)
      assert.deepStrictEqual(
        outcome.failed.map(({ seed: failed }) => `SVC_SIMULATION_SEED=${failed}`),
        []
      )
    })
  )
})
