/**
 * Flush cycles of a node. First every link submits its collected commands, then every runner link
 * sends one batch to its node, then every socket is written once. A node with time to spare flushes
 * at the end of the event loop's iteration, so nothing waits. The busier its event loop is, the
 * longer it waits between two flushes. A write is a system call, and most of what a delivery costs.
 */
import { performance } from "node:perf_hooks"
import { Clock, Context, Effect, Layer } from "effect"
import { monotonicMillis } from "#entities/monotonic"
import { socketLimits } from "./socket-limits.ts"

/**
 * Timers of flushes: at the end of the event loop's iteration, or after milliseconds if it is busy.
 */
export interface FlushTimers {
  readonly soon: (run: () => void) => void
  readonly later: (run: () => void, millis: number) => void
  /** Returns the milliseconds for which the event loop has been busy since it started. */
  readonly busyMillis: () => number
}

const processTimers: FlushTimers = {
  soon: setImmediate,
  later: setTimeout,
  busyMillis: () => performance.eventLoopUtilization().active
}

/**
 * The time between two flushes of a node whose event loop is busy for this share of the time. The delay
 * pays only where it keeps the node from saturation; below half of a core nothing waits.
 */
export const flushIntervalMillis = (busy: number): number => {
  const { busyShare, coalesceMillis, fullShare } = socketLimits
  const share = (busy - busyShare) / (fullShare - busyShare)
  return coalesceMillis * Math.min(1, Math.max(0, share))
}

/** The time between two flushes, measured a few times a second and smoothed. */
export class FlushInterval {
  readonly #busyMillis: () => number
  #measuredAt: number
  #busy: number
  #share = 0

  constructor(now: number, busyMillis: () => number) {
    this.#measuredAt = now
    this.#busyMillis = busyMillis
    this.#busy = busyMillis()
  }

  /** The interval in milliseconds. `now` in monotonic milliseconds. */
  at(now: number): number {
    const elapsed = now - this.#measuredAt
    if (elapsed >= socketLimits.loadMeasuredMillis) {
      const busy = this.#busyMillis()
      this.#share = (this.#share + (busy - this.#busy) / elapsed) / 2
      this.#busy = busy
      this.#measuredAt = now
    }
    return flushIntervalMillis(this.#share)
  }
}

/** The process' own timers; a simulation brings others. */
export const FlushTimers = Context.Reference<FlushTimers>("server/platform/flush/FlushTimers", {
  defaultValue: () => processTimers
})

/** Collector of output between flushes. */
export interface Flushable {
  readonly flush: () => void
}

export class FlushScheduler {
  readonly #now: () => number
  readonly #timers: FlushTimers
  readonly #interval: FlushInterval
  #inputs: Set<Flushable> = new Set()
  #links: Set<Flushable> = new Set()
  #outputs: Array<Flushable> = []
  #scheduled = false
  #flushedAt = 0

  /** `now` in monotonic milliseconds. */
  constructor(now: () => number, timers: FlushTimers = processTimers) {
    this.#now = now
    this.#timers = timers
    this.#interval = new FlushInterval(now(), timers.busyMillis)
  }

  /** Flushes this in the first phase of the next cycle. */
  scheduleInput(input: Flushable): void {
    this.#inputs.add(input)
    this.#schedule()
  }

  /** Flushes this in the second phase, after all links have submitted their inputs. */
  scheduleLink(link: Flushable): void {
    this.#links.add(link)
    this.#schedule()
  }

  /** Flushes this in the last phase. Call it once per cycle. */
  scheduleOutput(output: Flushable): void {
    this.#outputs.push(output)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    const now = this.#now()
    const wait = this.#flushedAt + this.#interval.at(now) - now
    if (wait < 1) this.#timers.soon(this.#run)
    else this.#timers.later(this.#run, wait)
  }

  readonly #run = (): void => {
    const inputs = this.#inputs
    this.#inputs = new Set()
    for (const input of inputs) input.flush()
    const links = this.#links
    this.#links = new Set()
    for (const link of links) link.flush()
    const outputs = this.#outputs
    this.#outputs = []
    this.#flushedAt = this.#now()
    this.#scheduled = false
    for (const output of outputs) output.flush()
    if (this.#inputs.size + this.#links.size > 0) this.#schedule()
  }
}

/** The scheduler that a node's gateway and its runner links share. */
export class NodeFlush extends Context.Service<NodeFlush, FlushScheduler>()(
  "server/platform/flush/NodeFlush"
) {
  static readonly layer = Layer.effect(
    NodeFlush,
    Effect.gen(function* () {
      return new FlushScheduler(monotonicMillis(yield* Clock.Clock), yield* FlushTimers)
    })
  )
}
