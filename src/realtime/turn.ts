/**
 * The turn of the event loop: frames read in one turn are handed to their rooms in one batch each,
 * then everything they caused is written, one write a socket. One immediate does both.
 */
import type { Outbox } from "./outbox.ts"

/** Something that collects input during a turn. */
export interface Collector {
  readonly flush: () => void
}

export class EventTurn {
  #collectors: Set<Collector> = new Set()
  #outboxes: Array<Outbox> = []
  #scheduled = false

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
    setImmediate(this.#run)
  }

  readonly #run = (): void => {
    const collectors = this.#collectors
    this.#collectors = new Set()
    for (const collector of collectors) collector.flush()
    const outboxes = this.#outboxes
    this.#outboxes = []
    this.#scheduled = false
    for (const outbox of outboxes) outbox.flush()
    if (this.#collectors.size > 0) this.#schedule()
  }
}
