/**
 * The turn of a node: frames read meanwhile are handed to their rooms in one batch each, then
 * everything they caused is written, one write a socket. A quiet node takes its turn at the end of the
 * event loop's, without delay; a busy one takes the next a few milliseconds after the last, so that
 * more leaves in one write (a write is a system call, and most of what a delivery costs).
 */
import { socket } from "#rpc/limits"
import type { Outbox } from "./outbox.ts"

/** Something that collects input during a turn. */
export interface Collector {
  readonly flush: () => void
}

export class EventTurn {
  readonly #now: () => number
  #collectors: Set<Collector> = new Set()
  #outboxes: Array<Outbox> = []
  #scheduled = false
  #takenAt = 0

  /** `now` in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Flush this at the end of the turn. */
  collector(collector: Collector): void {
    this.#collectors.add(collector)
    this.#schedule()
  }

  /** Write this at the end of the turn. */
  outbox(outbox: Outbox): void {
    this.#outboxes.push(outbox)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    const wait = this.#takenAt + socket.coalesceMillis - this.#now()
    if (wait <= 0 || wait > socket.coalesceMillis) setImmediate(this.#run)
    else setTimeout(this.#run, wait)
  }

  readonly #run = (): void => {
    const collectors = this.#collectors
    this.#collectors = new Set()
    for (const collector of collectors) collector.flush()
    const outboxes = this.#outboxes
    this.#outboxes = []
    this.#takenAt = this.#now()
    this.#scheduled = false
    for (const outbox of outboxes) outbox.flush()
    if (this.#collectors.size > 0) this.#schedule()
  }
}
