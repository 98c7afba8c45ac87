/**
 * Request throttles (decisions 3.1.14): token buckets in Postgres, shared by all nodes. A node takes
 * a lease of up to a twentieth of a bucket in one statement and spends it in memory, so a busy caller
 * does not cost a statement a request; nor does one who was refused and comes again too soon.
 */
import { Clock, Context, Effect, Layer, Metric, Schedule, Semaphore } from "effect"
import { RateLimited } from "#rpc/errors/codes"
import { caches, type Throttle } from "#rpc/limits"
import { ThrottleRepository } from "#sql/throttles"
import { Settings } from "./settings/settings.ts"

const leaseShare = 20
/** A lease that is not spent by then is given up, so that idle nodes do not hold tokens for good. */
const leaseShareOfWindow = 4
const sweepSeconds = 60

/** What this node knows of a bucket. */
interface Lease {
  tokens: number
  /** End of the lease, or of the refusal when there are no tokens; Unix milliseconds. */
  until: number
  retryAt: number
  readonly refill: Semaphore.Semaphore
}

const rateLimited = (millis: number): RateLimited =>
  new RateLimited({ details: { retryAfterSeconds: Math.max(1, Math.ceil(millis / 1000)) } })

export const throttledTotal = Metric.counter("svc_throttled_total", {
  description: "Requests refused with rate_limited since their bucket was empty.",
  incremental: true
})

export class Throttles extends Context.Service<
  Throttles,
  {
    /** Takes one token from the bucket of `key`; the key names the throttle and whom it counts. */
    readonly take: (throttle: Throttle, key: string) => Effect.Effect<void, RateLimited>
    /** Gives a token back that was taken a moment ago: what it stood for does not count. */
    readonly giveBack: (key: string) => Effect.Effect<void>
  }
>()("server/platform/throttles/Throttles") {
  /** Lets everything pass. */
  static readonly off = Layer.succeed(
    Throttles,
    Throttles.of({ take: () => Effect.void, giveBack: () => Effect.void })
  )

  static readonly on = Layer.effect(
    Throttles,
    Effect.gen(function* () {
      const rows = yield* ThrottleRepository
      yield* Effect.flatMap(Clock.currentTimeMillis, rows.sweep).pipe(
        Effect.tapDefect((defect) => Effect.logWarning("Buckets were not swept", defect)),
        Effect.exit,
        Effect.repeat(Schedule.spaced(`${sweepSeconds} seconds`)),
        Effect.forkScoped
      )
      return Throttles.of(makeBuckets(rows))
    })
  )

  static readonly layer = Layer.unwrap(
    Effect.map(Settings, ({ throttles }) => (throttles ? Throttles.on : Throttles.off))
  )
}

const makeBuckets = (rows: ThrottleRepository["Service"]) => {
  const leases = new Map<string, Lease>()

  const leaseOf = (key: string): Lease => {
    const known = leases.get(key)
    if (known !== undefined) return known
    const lease = { tokens: 0, until: 0, retryAt: 0, refill: Semaphore.makeUnsafe(1) }
    leases.set(key, lease)
    // The oldest lease makes room: its tokens come back as the bucket fills.
    const [oldest] = leases.keys()
    if (leases.size > caches.leases && oldest !== undefined) leases.delete(oldest)
    return lease
  }

  /** Spends a token of the lease: yes, no (refused until later), or unknown. */
  const spend = (lease: Lease, now: number): boolean | undefined => {
    if (lease.retryAt > now) return false
    if (lease.tokens < 1 || lease.until <= now) return undefined
    lease.tokens -= 1
    return true
  }

  const renew = Effect.fnUntraced(function* (throttle: Throttle, key: string, lease: Lease) {
    const now = yield* Clock.currentTimeMillis
    // Another request may have renewed it while this one waited.
    const spent = spend(lease, now)
    if (spent === true) return
    if (spent === false) return yield* rateLimited(lease.retryAt - now)
    const windowMillis = throttle.seconds * 1000
    const intervalMillis = windowMillis / throttle.burst
    const wanted = Math.max(1, Math.floor(throttle.burst / leaseShare))
    const taken = yield* rows.take({ key, wanted, windowMillis, intervalMillis, now })
    if (taken.granted === 0) {
      lease.tokens = 0
      lease.retryAt = taken.fullAt - windowMillis + intervalMillis
      return yield* rateLimited(lease.retryAt - now)
    }
    lease.tokens = taken.granted - 1
    lease.until = now + windowMillis / leaseShareOfWindow
  })

  const spendOne = Effect.fnUntraced(function* (throttle: Throttle, key: string) {
    const lease = leaseOf(key)
    const now = yield* Clock.currentTimeMillis
    const spent = spend(lease, now)
    if (spent === true) return
    if (spent === false) return yield* rateLimited(lease.retryAt - now)
    yield* lease.refill.withPermits(1)(renew(throttle, key, lease))
  })

  const take = (throttle: Throttle, key: string) =>
    Effect.tapError(spendOne(throttle, key), () => Metric.update(throttledTotal, 1))

  const giveBack = (key: string) => Effect.sync(() => void (leaseOf(key).tokens += 1))

  return { take, giveBack }
}
