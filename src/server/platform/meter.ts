/**
 * Meter of usage, for charging it. Each node adds counts up in memory and stores them every few
 * seconds, so that a crash loses less than a minute. A batch has an id, so that a repeated write
 * counts once. Without billing the meter counts nothing.
 */
import { Array, Clock, Context, DateTime, Effect, Latch, Layer, Semaphore } from "effect"
import { SecureRandom } from "effect/crypto"
import type { EnvironmentId } from "#rpc/ids"
import type { UsageComponent } from "#rpc/money"
import { MeteringRepository, type UsageCount } from "#sql/money/usage"
import { sweepDaily } from "./database.ts"
import { oldestOpen, periodOf } from "./months.ts"
import { randomSecret } from "./secrets.ts"
import { Settings } from "./settings/settings.ts"

/** Interval at which a node samples connections and calls, and stores its counts. */
export const meterMillis = 20_000

/** Counts of environments and components that a node holds; beyond it the service drops them. */
const meterCountsMax = 100_000

interface Batch {
  readonly id: string
  readonly counts: ReadonlyArray<UsageCount>
}

export class Meter extends Context.Service<
  Meter,
  {
    /** Counts a whole number of units of a component, now. */
    readonly add: (
      environmentId: EnvironmentId,
      component: UsageComponent,
      quantity: number
    ) => void
    /** Stores what this node has counted. */
    readonly flush: Effect.Effect<void>
  }
>()("server/platform/meter/Meter") {
  static readonly layer = Layer.effect(
    Meter,
    Effect.gen(function* () {
      const { enabled } = (yield* Settings).money
      if (!enabled) return Meter.of({ add: () => undefined, flush: Effect.void })
      const repository = yield* MeteringRepository
      const random = yield* SecureRandom.SecureRandom
      const clock = yield* Clock.Clock
      const newBatchId = Effect.provideService(randomSecret, SecureRandom.SecureRandom, random)
      const counts = new Counts()
      let pending: Batch | undefined

      const flush = Effect.gen(function* () {
        const now = yield* DateTime.now
        if (pending === undefined) {
          const taken = counts.take(oldestOpen(now))
          if (taken.length > 0) pending = { id: yield* newBatchId, counts: taken }
        }
        if (pending !== undefined) yield* repository.add({ ...pending, createdAt: now })
        pending = undefined
        counts.closeIfEmpty()
      }).pipe(Effect.uninterruptible)
      const lock = yield* Semaphore.make(1)
      const flushAlone = lock.withPermits(1)(flush)
      const tryFlush = Effect.exit(
        Effect.tapDefect(flushAlone, (defect) => Effect.logWarning("Failed to store usage", defect))
      )
      yield* Effect.addFinalizer(() => tryFlush)
      yield* counts.nonEmpty.await.pipe(
        Effect.andThen(Effect.sleep(meterMillis)),
        Effect.andThen(tryFlush),
        Effect.forever,
        Effect.forkScoped
      )
      yield* sweepDaily("Batches of usage", (now) =>
        repository.sweepBatches(DateTime.subtract(now, { days: 2 }))
      )
      return Meter.of({
        add: (environmentId, component, quantity) =>
          counts.add({
            environmentId,
            period: periodOf(DateTime.makeUnsafe(clock.currentTimeMillisUnsafe())),
            component,
            quantity: BigInt(quantity)
          }),
        flush: flushAlone
      })
    })
  )
}

/** Counts of this node that are not stored yet. */
class Counts {
  /** Open while there is something to store. */
  readonly nonEmpty = Latch.makeUnsafe(false)
  #byKey = new Map<string, { readonly of: UsageCount; quantity: bigint }>()

  add(count: UsageCount): void {
    if (count.quantity <= 0n) return
    const key = `${count.environmentId}/${count.period}/${count.component}`
    const known = this.#byKey.get(key)
    if (known !== undefined) known.quantity += count.quantity
    else if (this.#byKey.size < meterCountsMax) {
      this.#byKey.set(key, { of: count, quantity: count.quantity })
    }
    this.nonEmpty.openUnsafe()
  }

  closeIfEmpty(): void {
    if (this.#byKey.size === 0) this.nonEmpty.closeUnsafe()
  }

  /**
   * Removes and returns all counts. Counts of a month that is closed by now belong to the oldest
   * open one.
   */
  take(oldest: string): ReadonlyArray<UsageCount> {
    const taken = Array.fromIterable(this.#byKey.values())
    this.#byKey = new Map()
    const merged = new Map<string, UsageCount>()
    for (const { of, quantity } of taken) {
      const period = of.period < oldest ? oldest : of.period
      const key = `${of.environmentId}/${period}/${of.component}`
      const sum = (merged.get(key)?.quantity ?? 0n) + quantity
      merged.set(key, { ...of, period, quantity: sum })
    }
    return Array.fromIterable(merged.values())
  }
}
