/** A process that runs simulations, seed after seed, and reports each as it ends. */
import { Effect, Redacted } from "effect"
import { openDatabase } from "./postgres.ts"
import { simulateReturns } from "./returns.ts"
import { simulate } from "./simulation.ts"

/** What a seed is played as: a cluster under faults, or players who cannot return for a while. */
const plays = { faults: simulate, returns: simulateReturns } as const

/** The job of a worker: run every `step`th seed from `first` on, below `end`. */
export interface Assignment {
  readonly play: keyof typeof plays
  readonly server: string
  readonly first: number
  readonly end: number
  readonly step: number
}

/** The report on a simulation, with its log if it failed or was the only one. */
export interface SimulationReport {
  readonly seed: number
  readonly faults: ReadonlyArray<string>
  readonly log: string
  readonly outcomes: ReadonlyArray<readonly [string, number]>
}

const play = Effect.fnUntraced(function* (assignment: Assignment) {
  const { end, first, play: kind, server, step } = assignment
  const database = yield* openDatabase(Redacted.make(server))
  for (let seed = first; seed < end; seed += step) {
    const { faults, log, outcomes } = yield* Effect.promise(() => plays[kind](seed, database))
    const report: SimulationReport = {
      seed,
      faults,
      log: faults.length > 0 || end - first <= 1 ? log.join("\n") : "",
      outcomes: Array.from(outcomes)
    }
    process.send?.(report)
  }
}, Effect.scoped)

process.once("message", (assignment: Assignment) => {
  Effect.runFork(
    Effect.ensuring(
      play(assignment),
      Effect.sync(() => process.disconnect())
    )
  )
})
