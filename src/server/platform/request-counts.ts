/**
 * Counts of the requests of each environment, by minute, for the overview. Each node counts in memory and
 * adds its counts to the table every few seconds, in one statement for many environments. A count belongs
 * to the minute of that moment, so the hot path reads no clock.
 */
import { Array, Context, DateTime, Effect, Latch, Layer, Semaphore } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import { RequestCountRepository, type RequestMinute } from "#sql/projects/requests"
import { sweepHourly } from "./database.ts"

/** Bounds of the counts of requests that the overview shows. */
export const requestCounts = {
  /** Interval at which a node adds its counts to the table. */
  flushMillis: 5000,
  /** Environments in one statement. */
  perStatement: 1000,
  /**
   * Counts, by environment and minute, that a node holds while the database does not answer. Beyond
   * it, the node does not count requests of further environments and minutes.
   */
  waitingMax: 20_000,
  /**
   * Minutes and hours that the overview shows, this one included. The service deletes older counts.
   */
  minutes: 60,
  hours: 24
} as const

export class RequestCounts extends Context.Service<
  RequestCounts,
  {
    /** Counts a request that was answered with this status. */
    readonly add: (environmentId: EnvironmentId, status: number) => void
    /** Stores what this node has counted. */
    readonly flush: Effect.Effect<void>
  }
>()("server/platform/request-counts/RequestCounts") {
  static readonly layer = Layer.effect(
    RequestCounts,
    Effect.gen(function* () {
      const repository = yield* RequestCountRepository
      const counts = new Counts()
      const store = Effect.gen(function* () {
        counts.close(DateTime.startOf(yield* DateTime.now, "minute"))
        const chunks = Array.chunksOf(counts.waiting, requestCounts.perStatement)
        const storeOne = (chunk: ReadonlyArray<RequestMinute>) =>
          Effect.andThen(
            repository.add(chunk),
            Effect.sync(() => counts.stored(chunk))
          )
        yield* Effect.forEach(chunks, storeOne, { discard: true })
      }).pipe(Effect.uninterruptible)
      const flush = (yield* Semaphore.make(1)).withPermits(1)(store)
      const tryFlush = Effect.exit(
        Effect.tapDefect(flush, (defect) =>
          Effect.logWarning("Failed to store the counts of requests", defect)
        )
      )
      yield* Effect.addFinalizer(() => tryFlush)
      yield* counts.nonEmpty.await.pipe(
        Effect.andThen(Effect.sleep(requestCounts.flushMillis)),
        Effect.andThen(tryFlush),
        Effect.forever,
        Effect.forkScoped
      )
      yield* sweepHourly("Counts of requests", (now) =>
        repository.sweep(DateTime.subtract(now, { hours: requestCounts.hours }))
      )
      return RequestCounts.of({
        add: (environmentId, status) => counts.add(environmentId, status),
        flush
      })
    })
  )
}

interface Count {
  requests: number
  clientErrors: number
  serverErrors: number
}

/** Counts of this node that are not stored yet. */
class Counts {
  /** Open while there is something to store. */
  readonly nonEmpty = Latch.makeUnsafe(false)
  /** Counts since the last flush. */
  #open = new Map<EnvironmentId, Count>()
  /**
   * Counts of flushes, by environment and minute. While the database is away, they hold more than
   * one minute.
   */
  readonly #closed = new Map<string, RequestMinute>()

  add(environmentId: EnvironmentId, status: number): void {
    let count = this.#open.get(environmentId)
    if (count === undefined) {
      if (this.#open.size >= requestCounts.waitingMax) return
      count = { requests: 0, clientErrors: 0, serverErrors: 0 }
      this.#open.set(environmentId, count)
      this.nonEmpty.openUnsafe()
    }
    count.requests += 1
    if (status >= 500) count.serverErrors += 1
    else if (status >= 400) count.clientErrors += 1
  }

  /** Assigns the counts since the last flush to a minute. */
  close(minute: DateTime.Utc): void {
    const open = this.#open
    this.#open = new Map()
    for (const [environmentId, count] of open) {
      const key = keyOf({ environmentId, minute })
      const known = this.#closed.get(key)
      if (known === undefined && this.#closed.size >= requestCounts.waitingMax) continue
      this.#closed.set(key, {
        environmentId,
        minute,
        requests: count.requests + (known?.requests ?? 0),
        clientErrors: count.clientErrors + (known?.clientErrors ?? 0),
        serverErrors: count.serverErrors + (known?.serverErrors ?? 0)
      })
    }
  }

  get waiting(): ReadonlyArray<RequestMinute> {
    return Array.fromIterable(this.#closed.values())
  }

  stored(minutes: ReadonlyArray<RequestMinute>): void {
    for (const minute of minutes) this.#closed.delete(keyOf(minute))
    if (this.#closed.size === 0 && this.#open.size === 0) this.nonEmpty.closeUnsafe()
  }
}

const keyOf = ({
  environmentId,
  minute
}: Pick<RequestMinute, "environmentId" | "minute">): string =>
  `${environmentId} ${DateTime.toEpochMillis(minute)}`
