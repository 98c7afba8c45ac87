/**
 * Paces the links of a node that attach again. After a loss of locks that hits all runners, every link of
 * a node ends at the same moment; attaching all of them at once would keep runners and Postgres too
 * busy to refresh the locks that have just come back.
 *
 * - A few links start, then the event loop has other work, for longer the later it comes back.
 * - A bounded number of links attach at a time: what a restarting room costs is spent on its own runner
 *   and in Postgres, where this event loop does not notice it.
 *
 * The bound of the queue is the number of links.
 */
import { Clock, Effect } from "effect"
import { monotonicMillis } from "#entities/monotonic"

/** Links that start together, and the shortest pause before the next ones. */
export const linksPerBatch = 16
export const pauseMinMillis = 5
/** Milliseconds by which a pause grows for each millisecond that the previous one ended late. */
const restFactor = 4
const pauseMaxMillis = 200
/**
 * Maximum number of links that attach at a time. A link that takes longer counts no more: its
 * entity may be unreachable.
 */
export const attachingMax = 64
export const attachingMillis = 1000

/**
 * Waits for a slot in which the link may attach again. Links get slots in the order of their arrival. The
 * result releases the slot: call it when the link has attached, or could not.
 */
export const makeReattachments = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const now = monotonicMillis(yield* Clock.Clock)
  const waiting = new Set<() => void>()
  /** Start of each attaching link, oldest first. */
  const attaching = new Map<object, number>()
  let isRunning = false

  const startSome = (): void => {
    for (const [link, startedAt] of attaching) {
      if (now() - startedAt >= attachingMillis) attaching.delete(link)
    }
    let started = 0
    for (const start of waiting) {
      if (started === linksPerBatch || attaching.size >= attachingMax) return
      waiting.delete(start)
      start()
      started += 1
    }
  }

  const work = Effect.gen(function* () {
    let late = 0
    while (waiting.size > 0) {
      const pause = Math.min(pauseMinMillis + restFactor * late, pauseMaxMillis)
      const startedAt = now()
      startSome()
      yield* Effect.sleep(pause)
      late = Math.max(0, now() - startedAt - pause)
    }
    isRunning = false
  })

  return Effect.callback<() => void>((resume) => {
    const start = (): void => {
      const link = {}
      attaching.set(link, now())
      resume(Effect.succeed(() => void attaching.delete(link)))
    }
    waiting.add(start)
    if (!isRunning) {
      isRunning = true
      runFork(Effect.forkIn(work, scope))
    }
    return Effect.sync(() => void waiting.delete(start))
  })
})
