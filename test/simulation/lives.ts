/**
 * Plays many lives at once: the seeds are dealt to processes, one for each core, since a life keeps
 * one core busy from its beginning to its end.
 */
import { fork } from "node:child_process"
import { Effect } from "effect"
import type { Assignment, Told } from "./worker.ts"

/** What became of all lives. */
export interface Lives {
  readonly failed: ReadonlyArray<Told>
  /** The log of the only life. */
  readonly log: string
  /** How many lives there were, and how often each frame was answered with what. */
  readonly summary: string
}

/** One worker's share; it ends when the worker does. */
const share = (assignment: Assignment, told: (life: Told) => void) =>
  Effect.callback<void>((resume) => {
    const worker = fork(new URL("worker.ts", import.meta.url))
    worker.on("message", told)
    worker.once("exit", (code) =>
      resume(code === 0 ? Effect.void : Effect.die(new Error(`A worker ended with ${code}`)))
    )
    worker.send(assignment)
    return Effect.sync(() => worker.kill("SIGKILL"))
  })

export const playLives = Effect.fnUntraced(function* (options: {
  readonly server: string
  readonly first: number
  readonly count: number
  readonly workers: number
}) {
  const { count, first, server, workers } = options
  const failed: Array<Told> = []
  const outcomes = new Map<string, number>()
  let log = ""
  let played = 0
  yield* Effect.forEach(
    Array.from({ length: workers }, (_, i) => first + i),
    (from) =>
      share({ server, first: from, end: first + count, step: workers }, (life) => {
        played += 1
        log = life.log
        if (life.faults.length > 0) failed.push(life)
        for (const [what, times] of life.outcomes) {
          outcomes.set(what, (outcomes.get(what) ?? 0) + times)
        }
      }),
    { concurrency: workers, discard: true }
  )
  if (played !== count) yield* Effect.die(new Error(`${played} of ${count} lives were played`))
  const answers = Array.from(outcomes, ([what, times]) => `${what} ${times}`).toSorted()
  const lives: Lives = { failed, log, summary: `${count} lives\n${answers.join("\n")}` }
  return lives
})
