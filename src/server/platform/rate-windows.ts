/**
 * Sliding windows of rate limits: exact over all nodes, at one shared statement per request. A node
 * remembers a full window: retries within that time cost no statement.
 */
import { type Clock, Effect } from "effect"
import { type RateWindow } from "#rpc/auth"
import { RateLimited } from "#rpc/errors/codes"
import type { RateWindowRepository } from "#sql/rate-windows"
import { monotonicMillis } from "#entities/monotonic"

/** Windows of which a node remembers that they are full. */
const fullWindowsMax = 50_000

export const rateLimited = (millis: number): RateLimited =>
  new RateLimited({ details: { retryAfterSeconds: Math.max(1, Math.ceil(millis / 1000)) } })

/** Counts requests, and refuses those for which their window has no room. */
export const makeRateWindows = (
  repository: RateWindowRepository["Service"],
  clock: Clock.Clock
) => {
  const now = monotonicMillis(clock)
  /** The limit that each full window has reached, and when it has room again, monotonic milliseconds. */
  const full = new Map<string, { readonly limit: number; readonly until: number }>()

  const remember = (key: string, limit: number, waitMillis: number): void => {
    full.delete(key)
    full.set(key, { limit, until: now() + waitMillis })
    const [oldest] = full.keys()
    if (full.size > fullWindowsMax && oldest !== undefined) full.delete(oldest)
  }

  /**
   * Returns the milliseconds for which a window is known to stay full. A limit that was raised
   * since may leave room.
   */
  const knownWaitMillis = (key: string, limit: number): number => {
    const known = full.get(key)
    return known === undefined || limit > known.limit ? 0 : known.until - now()
  }

  return Effect.fnUntraced(function* ({ limit, seconds }: RateWindow, key: string) {
    const waitMillis = knownWaitMillis(key, limit)
    if (waitMillis > 0) return yield* rateLimited(waitMillis)
    full.delete(key)
    const result = yield* repository.take({ key, limit, windowMillis: seconds * 1000 })
    if (result.granted) return
    remember(key, limit, result.waitMillis)
    return yield* rateLimited(result.waitMillis)
  })
}
