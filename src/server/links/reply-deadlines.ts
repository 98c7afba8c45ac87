/**
 * Deadlines of requests to links. All wait equally long, so the oldest is due first and one timer
 * serves them all. A race of each request with its own sleep would cost two fibers and a timer.
 */
import { Clock, Effect } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { makeTimer } from "#entities/timer"
import { monotonicMillis } from "#entities/monotonic"
import { replyMillis } from "./entity-call.ts"

/** The error of a request without a reply. There is no time left to repeat it. */
export const noReply = new Unavailable()

/** Calls back once the reply is overdue; returns how to cancel that. At most one per request under way. */
export type ReplyDeadline = (onOverdue: () => void) => () => void

/** The deadlines of a node, until the scope closes. */
export const makeReplyDeadlines = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const now = monotonicMillis(clock)
  const due = new Map<() => void, number>()
  const fireAt = yield* makeTimer(() => expire())
  const wakeAt = (dueAt: number): void =>
    fireAt(clock.currentTimeMillisUnsafe() + Math.ceil(dueAt - now()))
  const expire = (): void => {
    const time = now()
    for (const [onOverdue, dueAt] of due) {
      if (dueAt > time) return wakeAt(dueAt)
      due.delete(onOverdue)
      onOverdue()
    }
  }
  const deadline: ReplyDeadline = (onOverdue) => {
    const dueAt = now() + replyMillis
    due.set(onOverdue, dueAt)
    if (due.size === 1) wakeAt(dueAt)
    return () => void due.delete(onOverdue)
  }
  return deadline
})
