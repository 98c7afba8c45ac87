/**
 * Flush cycles of a node. First every link submits the commands that it has collected, then every
 * runner link sends one batch to its node, then every socket is written once. An idle node flushes at
 * the end of the event loop's iteration; a busy one leaves a few milliseconds between two flushes, since
 * a write is a system call and most of what a delivery costs.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { socket } from "#rpc/limits"
import { monotonicMillis } from "./monotonic.ts"

/** Delays a flush: to the end of the event loop's iteration, or by milliseconds. */
export interface FlushTimers {
  readonly soon: (run: () => void) => void
  readonly later: (run: () => void, millis: number) => void
}

const processTimers: FlushTimers = { soon: setImmediate, later: setTimeout }

/** The process' own timers; a simulation brings others. */
export const FlushTimers = Context.Reference<FlushTimers>("server/platform/flush/FlushTimers", {
  defaultValue: () => processTimers
})

/** Something that collects between flushes. */
export interface Flushable {
  readonly flush: () => void
}

export class FlushScheduler {
  readonly #now: () => number
  readonly #timers: FlushTimers
  readonly #intervalMillis: number
  #inputs: Set<Flushable> = new Set()
  #links: Set<Flushable> = new Set()
  #outputs: Array<Flushable> = []
  #scheduled = false
  #flushedAt = 0

  /** `now` in monotonic milliseconds. An interval of 0 always flushes as soon as possible. */
  constructor(
    now: () => number,
    timers: FlushTimers = processTimers,
    intervalMillis: number = socket.coalesceMillis
  ) {
    this.#now = now
    this.#timers = timers
    this.#intervalMillis = intervalMillis
  }

  /** Flushes this in the first phase of the next cycle. */
  scheduleInput(input: Flushable): void {
    this.#inputs.add(input)
    this.#schedule()
  }

  /** Flushes this in the second phase: all inputs are submitted then. */
  scheduleLink(link: Flushable): void {
    this.#links.add(link)
    this.#schedule()
  }

  /** Flushes this in the last phase; to be called once per cycle. */
  scheduleOutput(output: Flushable): void {
    this.#outputs.push(output)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    const wait = this.#flushedAt + this.#intervalMillis - this.#now()
    if (wait <= 0) this.#timers.soon(this.#run)
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
