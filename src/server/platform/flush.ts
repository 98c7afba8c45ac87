/**
 * The turn of a node: frames read meanwhile are handed to their rooms in one batch each, then
 * everything they caused is sent, one frame to each other node and one write a socket. A quiet node
 * takes its turn at the end of the event loop's, without delay; a busy one takes the next a few
 * milliseconds after the last, so that more leaves in one write (a write is a system call, and most
 * of what a delivery costs).
 */
import { Clock, Context, Effect, Layer } from "effect"
import { socket } from "#rpc/limits"
import { type Outbox, WriteStats } from "./outbox.ts"

/** How a turn is put off: to the end of the event loop's turn, or by milliseconds. */
export interface FlushTimers {
  readonly soon: (run: () => void) => void
  readonly later: (run: () => void, millis: number) => void
}

const processTimers: FlushTimers = { soon: setImmediate, later: setTimeout }

/** The process' own timers, unless a simulation of the node brings others. */
export const FlushTimers = Context.Reference<FlushTimers>("server/platform/flush/TurnTimers", {
  defaultValue: () => processTimers
})

/** Something that collects input during a turn. */
export interface Flushable {
  readonly flush: () => void
}

export class FlushScheduler {
  readonly writeStats = new WriteStats()
  readonly #now: () => number
  readonly #timers: FlushTimers
  readonly #gatherMillis: number
  #collectors: Set<Flushable> = new Set()
  #lines: Set<Flushable> = new Set()
  #outboxes: Array<Outbox> = []
  #scheduled = false
  #takenAt = 0

  /** `now` in milliseconds; a turn that gathers nothing is always taken at once. */
  constructor(
    now: () => number,
    timers: FlushTimers = processTimers,
    gatherMillis: number = socket.coalesceMillis
  ) {
    this.#now = now
    this.#timers = timers
    this.#gatherMillis = gatherMillis
  }

  /** Flush this at the end of the turn. */
  scheduleInput(collector: Flushable): void {
    this.#collectors.add(collector)
    this.#schedule()
  }

  /** Flush this when all that has been collected is where it goes. */
  scheduleLink(line: Flushable): void {
    this.#lines.add(line)
    this.#schedule()
  }

  /** Write this at the end of the turn. */
  scheduleOutbox(outbox: Outbox): void {
    this.#outboxes.push(outbox)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    const wait = this.#takenAt + this.#gatherMillis - this.#now()
    if (wait <= 0 || wait > this.#gatherMillis) this.#timers.soon(this.#run)
    else this.#timers.later(this.#run, wait)
  }

  readonly #run = (): void => {
    const collectors = this.#collectors
    this.#collectors = new Set()
    for (const collector of collectors) collector.flush()
    const lines = this.#lines
    this.#lines = new Set()
    for (const line of lines) line.flush()
    const outboxes = this.#outboxes
    this.#outboxes = []
    this.#takenAt = this.#now()
    this.#scheduled = false
    for (const outbox of outboxes) outbox.flush()
    if (this.#collectors.size + this.#lines.size > 0) this.#schedule()
  }
}

/** The turn that a node's gateway and its lines to other nodes share. */
export class NodeFlush extends Context.Service<NodeFlush, FlushScheduler>()(
  "server/platform/flush/NodeTurn"
) {
  static readonly layer = Layer.effect(
    NodeFlush,
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      return new FlushScheduler(() => clock.currentTimeMillisUnsafe(), yield* FlushTimers)
    })
  )
}
