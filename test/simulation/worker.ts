/** A process that plays lives, seed after seed, and tells of each as it ends. */
import { Effect, Redacted } from "effect"
import { openDatabase } from "./postgres.ts"
import { simulate } from "./simulation.ts"

/** What a worker is asked: to play every `step`th seed from `first` on, below `end`. */
export interface Assignment {
  readonly server: string
  readonly first: number
  readonly end: number
  readonly step: number
}

/** What it tells of a life; the log only when it was a bad one, or the only one. */
export interface Told {
  readonly seed: number
  readonly faults: ReadonlyArray<string>
  readonly log: string
  readonly outcomes: ReadonlyArray<readonly [string, number]>
}

const play = Effect.fnUntraced(function* ({ end, first, server, step }: Assignment) {
  const database = yield* openDatabase(Redacted.make(server))
  for (let seed = first; seed < end; seed += step) {
    const { faults, log, outcomes } = yield* Effect.promise(() => simulate(seed, database))
    const told: Told = {
      seed,
      faults,
      log: faults.length > 0 || end - first <= 1 ? log.join("\n") : "",
      outcomes: Array.from(outcomes)
    }
    process.send?.(told)
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
