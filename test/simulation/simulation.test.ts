/**
 * A thousand lives of a cluster, each from a seed (see `simulation/`): players on several runners,
 * with runners killed, stopped, frozen and cut off, and a database that is slow, away or silent.
 *
 * `SVC_SIMULATION_SEED=7 npx vitest run --project simulation` plays one life again and prints what
 * happened in it; `SVC_SIMULATION_SEEDS` says how many are played.
 */
import { availableParallelism } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { Config, Effect, Option } from "effect"
import { inject } from "vitest"
import { playLives } from "./lives.ts"

const settings = Config.all({
  seed: Config.option(Config.Int("SVC_SIMULATION_SEED")),
  seeds: Config.withDefault(Config.Int("SVC_SIMULATION_SEEDS"), 1000)
})

describe("a cluster, whatever happens to it", { timeout: 600_000 }, () => {
  it.live("keeps its promises", () =>
    Effect.gen(function* () {
      const { seed, seeds } = yield* settings
      const lives = Option.match(seed, {
        onNone: () => ({ first: 1, count: seeds }),
        onSome: (first) => ({ first, count: 1 })
      })
      const workers = Math.min(availableParallelism(), lives.count)
      const outcome = yield* playLives({ ...lives, workers, server: inject("postgres") })
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
