/**
 * Media processes of a runner: at most one per UDP port, and a spare one without a port after the first
 * call. The spare replaces a process that ends, since a new one takes longer to load than members
 * should wait.
 */
import type { MediaOptions } from "./media-messages.ts"
import type { MediaWorker } from "./media-worker.ts"

/** Milliseconds for which the pool skips a port after its process failed to start. */
const failureMillis = 30_000

interface WorkerSlot {
  readonly options: MediaOptions
  worker: MediaWorker | undefined
  /** Time until which the pool skips the port, in monotonic milliseconds. */
  failedUntil: number
}

interface PoolOptions {
  /** Options of each process. */
  readonly slots: ReadonlyArray<MediaOptions>
  /** Starts a process, and calls `onEnd` once it has ended. */
  readonly launch: (onEnd: (wasReady: boolean) => void) => MediaWorker
  /** Called when a process that served has ended. */
  readonly onLost: () => void
  readonly now: () => number
}

export class WorkerPool {
  readonly #options: PoolOptions
  readonly #slots: ReadonlyArray<WorkerSlot>
  #spare: MediaWorker | undefined
  #spareFailedUntil = 0
  #isClosing = false

  constructor(options: PoolOptions) {
    this.#options = options
    this.#slots = options.slots.map((each) => ({
      options: each,
      worker: undefined,
      failedUntil: 0
    }))
  }

  /** Chooses the process for a new call: the one that sends least. */
  choose(environmentId: string): MediaWorker | undefined {
    if (this.#isClosing) return undefined
    const now = this.#options.now()
    const [slot] = this.#slots
      .filter(
        ({ failedUntil, worker }) => now >= failedUntil && worker?.isBusyFor(environmentId) !== true
      )
      .toSorted((a, b) => (a.worker?.forwards ?? 0) - (b.worker?.forwards ?? 0))
    if (slot === undefined) return undefined
    if (slot.worker?.needsReplacement === true) {
      slot.worker.stop()
      slot.worker = undefined
    }
    return slot.worker ?? this.#fill(slot)
  }

  /** Ends the processes that hang or hold too much memory; returns the reason for each. */
  check(): ReadonlyArray<string> {
    return [...this.#slots.map(({ worker }) => worker), this.#spare].flatMap((worker) => {
      const reason = worker?.check()
      if (reason === undefined) return []
      worker?.stop()
      if (worker === this.#spare) this.#spare = undefined
      return [reason]
    })
  }

  /** Starts a spare process if none exists and calls may need one. */
  keepSpare(): void {
    const isNeeded = this.#slots.some(({ worker }) => worker?.isReady === true)
    const mayStart = !this.#isClosing && this.#options.now() >= this.#spareFailedUntil
    if (this.#spare === undefined && isNeeded && mayStart) this.#spare = this.#launch()
  }

  stop(): void {
    this.#isClosing = true
    for (const { worker } of this.#slots) worker?.stop()
    this.#spare?.stop()
  }

  #fill(slot: WorkerSlot): MediaWorker {
    const worker = this.#spare ?? this.#launch()
    this.#spare = undefined
    slot.worker = worker
    return worker.bind(slot.options)
  }

  #launch(): MediaWorker {
    const worker = this.#options.launch((wasReady) => this.#ended(worker, wasReady))
    return worker
  }

  #ended(worker: MediaWorker, wasReady: boolean): void {
    const failedUntil = this.#options.now() + failureMillis
    if (this.#spare === worker) {
      this.#spare = undefined
      this.#spareFailedUntil = failedUntil
    }
    const slot = this.#slots.find((each) => each.worker === worker)
    if (slot === undefined) return
    slot.worker = undefined
    if (!wasReady) slot.failedUntil = failedUntil
    else if (!this.#isClosing) this.#options.onLost()
  }
}
