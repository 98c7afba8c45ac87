/**
 * Paces the links of a node that attach again. After a loss of locks that hits all runners, every link of
 * a node ends at the same moment; attaching all of them at once would keep the event loop from
 * refreshing the locks that have just come back.
 *
 * A few links start, then the event loop has other work, for longer the later it comes back. The bound of
 * the queue is the number of links.
 */
import { Clock, Effect } from "effect"
import { monotonicMillis } from "#server/platform/monotonic"

/** Links that start together, and the shortest pause before the next ones. */
export const linksPerTurn = 16
export const turnMillis = 5
/** By how much a pause is prolonged for each millisecond that the one before ended late. */
const restFactor = 4
const pauseMaxMillis = 200

/** Waits until the link may attach again; links take turns in the order of their arrival. */
export const makeReattachments = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const now = monotonicMillis(yield* Clock.Clock)
  const waiting = new Set<() => void>()
  let isRunning = false

  const startSome = (): void => {
    let started = 0
    for (const start of waiting) {
      waiting.delete(start)
      start()
      started += 1
      if (started === linksPerTurn) return
    }
  }

  const work = Effect.gen(function* () {
    let late = 0
    while (waiting.size > 0) {
      const pause = Math.min(turnMillis + restFactor * late, pauseMaxMillis)
      const startedAt = now()
      startSome()
      yield* Effect.sleep(pause)
      late = Math.max(0, now() - startedAt - pause)
    }
    isRunning = false
  })

  return Effect.callback<void>((resume) => {
    const start = (): void => resume(Effect.void)
    waiting.add(start)
    if (!isRunning) {
      isRunning = true
      runFork(Effect.forkIn(work, scope))
    }
    return Effect.sync(() => void waiting.delete(start))
  })
})
