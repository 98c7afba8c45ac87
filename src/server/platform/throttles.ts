/**
 * Request throttles in Postgres, shared by all nodes: token buckets, and the sliding windows of
 * `rate-windows.ts`. A node takes up to a twentieth of a bucket in one statement and spends it from
 * memory. So a busy caller does not cost a statement for each request. A node also remembers a
 * refusal: retries within that time cost no statement.
 */
import { Clock, Context, Effect, Layer, Metric, Schedule, Semaphore } from "effect"
import { type RateWindow, type Throttle } from "#rpc/auth"
import { RateLimited } from "#rpc/errors/codes"
import { RateWindowRepository } from "#sql/rate-windows"
import { ThrottleRepository } from "#sql/throttles"
import { siteKey } from "./client-address.ts"
import { makeRateWindows, rateLimited } from "./rate-windows.ts"
import { Settings } from "./settings/settings.ts"

/**
 * Factor of the limit of a /48 network over that of an IPv6 client, which is one /64 network.
 * Providers give one customer a /64 at least, and at most a /48, which has 65,536 of them.
 */
export const siteFactor = 16

/** Buckets for which a node holds prefetched tokens. */
const allowancesMax = 50_000

/** Divisor of the burst: a node takes 1/20 of it at once. */
const allowanceDivisor = 20
/**
 * Divisor of the window for the expiry of an allowance: after 1/4 of it, so that idle nodes do not
 * keep tokens.
 */
const expiryDivisor = 4
const sweepSeconds = 60

/** The part of a bucket that this node has taken and not spent. */
interface TokenAllowance {
  tokens: number
  /** Expiry of the tokens, Unix milliseconds. */
  expiresAt: number
  /** Time before which there is no token, Unix milliseconds; the bucket was empty. */
  retryAt: number
  readonly refill: Semaphore.Semaphore
}

export const rateLimitedTotal = Metric.counter("svc_throttled_total", {
  description: "Requests refused with rate_limited: their bucket was empty or their window full.",
  incremental: true
})

const widened = (limit: Throttle | RateWindow): Throttle | RateWindow =>
  "limit" in limit
    ? { ...limit, limit: limit.limit * siteFactor }
    : { ...limit, burst: limit.burst * siteFactor }

export class Throttles extends Context.Service<
  Throttles,
  {
    /**
     * Takes one token from the bucket of `key`, which names the throttle and the caller, or counts
     * the request in the sliding window of `key`. A key with the network of an IPv6 client is also
     * limited for the /48 around it.
     */
    readonly take: (limit: Throttle | RateWindow, key: string) => Effect.Effect<void, RateLimited>
    /** Refunds one token that the bucket gave a moment ago: the request does not count. */
    readonly refund: (key: string) => Effect.Effect<void>
  }
>()("server/platform/throttles/Throttles") {
  /** Limits nothing. */
  static readonly off = Layer.succeed(
    Throttles,
    Throttles.of({ take: () => Effect.void, refund: () => Effect.void })
  )

  static readonly on = Layer.effect(
    Throttles,
    Effect.gen(function* () {
      const repository = yield* ThrottleRepository
      const windows = yield* RateWindowRepository
      yield* Effect.flatMap(Clock.currentTimeMillis, repository.sweep).pipe(
        Effect.andThen(windows.sweep),
        Effect.tapDefect((defect) => Effect.logWarning("Failed to sweep rate limits", defect)),
        Effect.exit,
        Effect.repeat(Schedule.spaced(`${sweepSeconds} seconds`)),
        Effect.forkScoped
      )
      const { refund, take } = makeBuckets(repository)
      const count = makeRateWindows(windows, yield* Clock.Clock)
      const takeOne = (limit: Throttle | RateWindow, key: string) =>
        "limit" in limit ? count(limit, key) : take(limit, key)
      return Throttles.of({
        take: (limit, key) => {
          const site = siteKey(key)
          const taken = takeOne(limit, key)
          // The narrow one first: one network alone does not empty the bucket of its neighbours.
          const both =
            site === undefined ? taken : Effect.andThen(taken, takeOne(widened(limit), site))
          return Effect.tapError(both, () => Metric.update(rateLimitedTotal, 1))
        },
        refund: (key) => {
          const site = siteKey(key)
          return site === undefined ? refund(key) : Effect.andThen(refund(key), refund(site))
        }
      })
    })
  )

  static readonly layer = Layer.unwrap(
    Effect.map(Settings, ({ throttles }) => (throttles ? Throttles.on : Throttles.off))
  )
}

const makeBuckets = (repository: ThrottleRepository["Service"]) => {
  const allowances = new Map<string, TokenAllowance>()

  const allowanceOf = (key: string): TokenAllowance => {
    const known = allowances.get(key)
    if (known !== undefined) return known
    const allowance = { tokens: 0, expiresAt: 0, retryAt: 0, refill: Semaphore.makeUnsafe(1) }
    allowances.set(key, allowance)
    // The oldest one is evicted; its tokens are lost until the bucket refills.
    const [oldest] = allowances.keys()
    if (allowances.size > allowancesMax && oldest !== undefined) allowances.delete(oldest)
    return allowance
  }

  /** Spends a token: true, false (refused until `retryAt`), or undefined (ask the database). */
  const spend = (allowance: TokenAllowance, now: number): boolean | undefined => {
    if (allowance.retryAt > now) return false
    if (allowance.tokens < 1 || allowance.expiresAt <= now) return undefined
    allowance.tokens -= 1
    return true
  }

  const refill = Effect.fnUntraced(function* (
    throttle: Throttle,
    key: string,
    allowance: TokenAllowance
  ) {
    const now = yield* Clock.currentTimeMillis
    // Another request may have refilled it while this one waited.
    const spent = spend(allowance, now)
    if (spent === true) return
    if (spent === false) return yield* rateLimited(allowance.retryAt - now)
    const windowMillis = throttle.seconds * 1000
    const intervalMillis = windowMillis / throttle.burst
    const wanted = Math.max(1, Math.floor(throttle.burst / allowanceDivisor))
    const taken = yield* repository.take({ key, wanted, windowMillis, intervalMillis, now })
    if (taken.granted === 0) {
      allowance.tokens = 0
      allowance.retryAt = taken.fullAt - windowMillis + intervalMillis
      return yield* rateLimited(allowance.retryAt - now)
    }
    allowance.tokens = taken.granted - 1
    allowance.expiresAt = now + windowMillis / expiryDivisor
  })

  const take = Effect.fnUntraced(function* (throttle: Throttle, key: string) {
    const allowance = allowanceOf(key)
    const now = yield* Clock.currentTimeMillis
    const spent = spend(allowance, now)
    if (spent === true) return
    if (spent === false) return yield* rateLimited(allowance.retryAt - now)
    yield* allowance.refill.withPermits(1)(refill(throttle, key, allowance))
  })

  const refund = (key: string) => Effect.sync(() => void (allowanceOf(key).tokens += 1))

  return { take, refund }
}
