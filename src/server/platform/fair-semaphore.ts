/**
 * Semaphore that shares its permits between keys, such as environments. Each key has a bounded queue of
 * its own, and the queues take turns. So a key with many or slow holders delays itself, not the others.
 *
 * A share keeps permits free for keys that hold none: another permit for a key must leave it with at
 * most `share` times as many as remain free. With a share of 4, one busy key gets 80 % of the permits
 * and two get 44 % each. Without a share, one key may hold all permits.
 */
import { Effect } from "effect"

/** Bounds of the shared permits. */
export interface FairSharesOptions {
  readonly permits: number
  /** Most permits of one key for each free permit. Omit where holders release within milliseconds. */
  readonly share?: number
  /** Most permits of one key. */
  readonly permitsPerKey?: number
  /** Most waiters of one key. */
  readonly waitingPerKey: number
}

export interface FairSemaphoreOptions<E> extends FairSharesOptions {
  /** Longest wait for a permit. */
  readonly waitMillis?: number
  /** Refuses a caller whose queue is full, or who has waited too long. */
  readonly refuse: Effect.Effect<never, E>
}

/** Makes an effect interruptible again. */
type Restore = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

interface Waiter {
  isGranted: boolean
  resume: (() => void) | undefined
}

/** The bookkeeping of the permits: who holds them, and who is next. */
export class FairShares<W> {
  readonly #permits: number
  readonly #share: number
  readonly #permitsPerKey: number
  readonly #waitingPerKey: number
  readonly #held = new Map<string | undefined, number>()
  /** Queues that are not empty; the first one is the next. */
  readonly #queues = new Map<string | undefined, Array<W>>()
  #free: number

  constructor(options: FairSharesOptions) {
    this.#permits = options.permits
    this.#share = options.share ?? Infinity
    this.#permitsPerKey = options.permitsPerKey ?? options.permits
    this.#waitingPerKey = options.waitingPerKey
    this.#free = options.permits
  }

  /** Permits that nobody holds. */
  get free(): number {
    return this.#free
  }

  heldBy(key: string | undefined): number {
    return this.#held.get(key) ?? 0
  }

  waitingFor(key: string | undefined): number {
    return this.#queues.get(key)?.length ?? 0
  }

  /** Takes a permit if the key may have another one now. Returns whether it did. */
  take(key: string | undefined): boolean {
    if (this.#queues.has(key) || !this.#mayTake(key)) return false
    this.#hold(key)
    return true
  }

  /** Appends a waiter to the queue of the key; false if the queue is full. */
  wait(key: string | undefined, waiter: W): boolean {
    const queue = this.#queues.get(key)
    if ((queue?.length ?? 0) >= this.#waitingPerKey) return false
    if (queue === undefined) this.#queues.set(key, [waiter])
    else queue.push(waiter)
    return true
  }

  /** Removes a waiter that no longer waits; returns the waiters that it has blocked. */
  leave(key: string | undefined, waiter: W): ReadonlyArray<W> {
    const queue = this.#queues.get(key)
    const place = queue?.indexOf(waiter) ?? -1
    if (place !== -1) queue?.splice(place, 1)
    if (queue?.length === 0) this.#queues.delete(key)
    return this.#grantNext()
  }

  /** Releases a permit; returns the waiters that now hold one. */
  release(key: string | undefined): ReadonlyArray<W> {
    const held = this.heldBy(key)
    if (held > 1) this.#held.set(key, held - 1)
    else this.#held.delete(key)
    this.#free = Math.min(this.#permits, this.#free + 1)
    return this.#grantNext()
  }

  #hold(key: string | undefined): void {
    this.#held.set(key, this.heldBy(key) + 1)
    this.#free -= 1
  }

  /**
   * Whether the key may take a permit. The service's own work has no key, and no share: other work
   * depends on it.
   */
  #mayTake(key: string | undefined): boolean {
    if (this.#free < 1) return false
    const held = this.heldBy(key)
    if (key === undefined || held === 0) return true
    if (held >= this.#permitsPerKey) return false
    return this.#share === Infinity || held < this.#share * (this.#free - 1)
  }

  #grantNext(): ReadonlyArray<W> {
    const granted: Array<W> = []
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const [key, queue] = next
      const waiter = queue.shift()
      if (waiter === undefined) return granted
      this.#hold(key)
      granted.push(waiter)
      if (queue.length > 0 && this.#queues.size === 1) continue
      // The other keys come before the next waiter of this one.
      this.#queues.delete(key)
      if (queue.length > 0) this.#queues.set(key, queue)
    }
    return granted
  }

  /** The queue to serve next; the service's own work goes first. */
  #next(): readonly [key: string | undefined, queue: Array<W>] | undefined {
    if (this.#free < 1) return undefined
    const own = this.#queues.get(undefined)
    if (own !== undefined) return [undefined, own]
    for (const entry of this.#queues) if (this.#mayTake(entry[0])) return entry
    return undefined
  }
}

/** Runs work under permits that are shared between keys. */
export class FairSemaphore<E> {
  readonly #shares: FairShares<Waiter>
  readonly #options: FairSemaphoreOptions<E>

  constructor(options: FairSemaphoreOptions<E>) {
    this.#options = options
    this.#shares = new FairShares(options)
  }

  /** Permits that nobody holds. */
  get free(): number {
    return this.#shares.free
  }

  /** Runs the effect with a permit of the key; `undefined` is the service's own work. */
  withPermit(key: string | undefined) {
    return <A, E2, R>(effect: Effect.Effect<A, E2, R>): Effect.Effect<A, E | E2, R> =>
      Effect.uninterruptibleMask((restore) => {
        const withRelease = Effect.onExit(restore(effect), () =>
          Effect.sync(() => resumeAll(this.#shares.release(key)))
        )
        if (this.#shares.take(key)) return withRelease
        return Effect.andThen(this.#wait(key, restore), withRelease)
      })
  }

  #wait(key: string | undefined, restore: Restore) {
    return Effect.suspend(() => {
      const { refuse, waitMillis } = this.#options
      const waiter: Waiter = { isGranted: false, resume: undefined }
      if (!this.#shares.wait(key, waiter)) return refuse
      const granted = Effect.callback<void>((resume) => {
        if (waiter.isGranted) return resume(Effect.void)
        waiter.resume = () => resume(Effect.void)
      })
      const bounded =
        waitMillis === undefined
          ? granted
          : Effect.timeoutOrElse(granted, { duration: waitMillis, orElse: () => refuse })
      return Effect.onError(restore(bounded), () =>
        Effect.sync(() =>
          resumeAll(waiter.isGranted ? this.#shares.release(key) : this.#shares.leave(key, waiter))
        )
      )
    })
  }
}

/** Resumes waiters. A resumed fiber may release at once, so each one starts on its own stack. */
const resumeAll = (waiters: ReadonlyArray<Waiter>): void => {
  for (const waiter of waiters) {
    waiter.isGranted = true
    queueMicrotask(() => waiter.resume?.())
  }
}
