/**
 * Sliding windows of rate limits: exact over all nodes, at one shared statement per request. A node
 * remembers a full window: retries within that time cost no statement.
 */
import { type Clock, Effect } from "effect"
import { RateLimited } from "#rpc/errors/codes"
import { caches, type RateWindow } from "#rpc/limits"
import type { RateWindowRepository } from "#sql/rate-windows"
import { monotonicMillis } from "./monotonic.ts"

export const rateLimited = (millis: number): RateLimited =>
  new RateLimited({ details: { retryAfterSeconds: Math.max(1, Math.ceil(millis / 1000)) } })

/** Counts requests, and refuses those for which their window has no room. */
export const makeRateWindows = (
  repository: RateWindowRepository["Service"],
  clock: Clock.Clock
) => {
  const now = monotonicMillis(clock)
  /** When each full window has room again, monotonic milliseconds. */
  const fullUntil = new Map<string, number>()

  const remember = (key: string, waitMillis: number): void => {
    fullUntil.delete(key)
    fullUntil.set(key, now() + waitMillis)
    const [oldest] = fullUntil.keys()
    if (fullUntil.size > caches.fullWindows && oldest !== undefined) fullUntil.delete(oldest)
  }

  return Effect.fnUntraced(function* ({ limit, seconds }: RateWindow, key: string) {
    const waitMillis = (fullUntil.get(key) ?? 0) - now()
    if (waitMillis > 0) return yield* rateLimited(waitMillis)
    fullUntil.delete(key)
    const result = yield* repository.take({ key, limit, windowMillis: seconds * 1000 })
    if (result.granted) return
    remember(key, result.waitMillis)
    return yield* rateLimited(result.waitMillis)
  })
}
