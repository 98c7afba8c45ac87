/**
 * Runs many simulations at once. The seeds are distributed over one process per core, since a simulation
 * keeps one core busy all the time.
 */
import { fork } from "node:child_process"
import { Effect } from "effect"
import type { Assignment, SimulationReport } from "./worker.ts"

/** The outcome of all simulations. */
export interface Outcome {
  readonly failed: ReadonlyArray<SimulationReport>
  /** The log, if there was only one simulation. */
  readonly log: string
  /** How many simulations ran, and how often each frame got which reply. */
  readonly summary: string
}

/** The share of one worker; ends when the worker exits. */
const share = (assignment: Assignment, report: (run: SimulationReport) => void) =>
  Effect.callback<void>((resume) => {
    const worker = fork(new URL("worker.ts", import.meta.url))
    worker.on("message", report)
    worker.once("exit", (code) =>
      resume(code === 0 ? Effect.void : Effect.die(new Error(`A worker exited with code ${code}`)))
    )
    worker.send(assignment)
    return Effect.sync(() => worker.kill("SIGKILL"))
  })

export const runSimulations = Effect.fnUntraced(function* (options: {
  readonly play: Assignment["play"]
  readonly server: string
  readonly first: number
  readonly count: number
  readonly workers: number
}) {
  const { count, first, play, server, workers } = options
  const failed: Array<SimulationReport> = []
  const outcomes = new Map<string, number>()
  let log = ""
  let finished = 0
  yield* Effect.forEach(
    Array.from({ length: workers }, (_, i) => first + i),
    (from) =>
      share({ play, server, first: from, end: first + count, step: workers }, (run) => {
        finished += 1
        log = run.log
        if (run.faults.length > 0) failed.push(run)
        for (const [what, times] of run.outcomes) {
          outcomes.set(what, (outcomes.get(what) ?? 0) + times)
        }
      }),
    { concurrency: workers, discard: true }
  )
  if (finished !== count) yield* Effect.die(new Error(`${finished} of ${count} simulations ran`))
  const answers = Array.from(outcomes, ([what, times]) => `${what} ${times}`).toSorted()
  const outcome: Outcome = { failed, log, summary: `${count} seeds\n${answers.join("\n")}` }
  return outcome
})
