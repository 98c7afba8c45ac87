/**
 * Simulations of a cluster, each from a seed (see `simulation/simulation.ts`): players on several runners,
 * with runners killed, stopped, frozen and partitioned, and a database that is slow, away or silent.
 *
 * `SVC_SIMULATION_SEED=7 npx vitest run --project simulation` replays one seed and prints its log;
 * `SVC_SIMULATION_SEEDS` sets how many run, `SVC_SIMULATION_FIRST` the first of them.
 */
import { availableParallelism } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { Config, Effect, Option } from "effect"
import { inject } from "vitest"
import { runSimulations } from "./runs.ts"

const seedCounts = {
  faults: { short: 12, long: 1000 },
  returns: { short: 6, long: 1000 }
}

/**
 * Seeds that show a fault which is still open. The test fails when another seed does, or one of these no
 * longer does.
 */
const openFaults: Readonly<Record<keyof typeof seedCounts, ReadonlyArray<number>>> = {
  faults: [],
  returns: []
}

const settings = Config.all({
  seed: Config.option(Config.Int("SVC_SIMULATION_SEED")),
  first: Config.withDefault(Config.Int("SVC_SIMULATION_FIRST"), 1),
  seeds: Config.option(Config.Int("SVC_SIMULATION_SEEDS"))
})

/** Runs the seeds of the settings; fails with those in which a check failed. */
const checkSeeds = Effect.fnUntraced(function* (play: keyof typeof seedCounts) {
  const { first, seed, seeds } = yield* settings
  const range = Option.match(seed, {
    onNone: () => ({
      first,
      count: Option.getOrElse(seeds, () => seedCounts[play][inject("form")])
    }),
    onSome: (only) => ({ first: only, count: 1 })
  })
  const workers = Math.min(availableParallelism(), range.count)
  const outcome = yield* runSimulations({ ...range, play, workers, server: inject("postgres") })
  for (const { log, seed: failed } of outcome.failed) {
    yield* Effect.logError(`seed ${failed}\n${log}`)
  }
  if (Option.isSome(seed)) yield* Effect.logInfo(outcome.log)
  yield* Effect.logInfo(outcome.summary)
  const isRun = (it: number): boolean => it >= range.first && it < range.first + range.count
  assert.deepStrictEqual(
    outcome.failed.map(({ seed: failed }) => `SVC_SIMULATION_SEED=${failed}`),
    openFaults[play].filter(isRun).map((known) => `SVC_SIMULATION_SEED=${known}`)
  )
})

describe("a simulated cluster under faults", { timeout: 1_800_000 }, () => {
  it.live("loses no acknowledged change, seats no player twice and agrees in the end", () =>
    checkSeeds("faults")
  )
})

describe("players of a simulated cluster who cannot return", { timeout: 1_800_000 }, () => {
  it.live("keep their seats as long as the rule says, and no longer", () => checkSeeds("returns"))
})
