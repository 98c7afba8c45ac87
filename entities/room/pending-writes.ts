/** Changes of a room since its last write, and the replies that wait until those are written. */
import type { RoomOutput } from "./messages.ts"

interface DeferredReply {
  readonly node: string
  readonly reply: RoomOutput
  /** Number of changes that must be written before the reply is sent. */
  readonly changes: number
}

export class PendingWrites {
  #changes = 0
  /** When the oldest unwritten change was made. */
  #since = Number.POSITIVE_INFINITY
  /** When the oldest change was made that no write under way covers. */
  #notStartedSince = Number.POSITIVE_INFINITY
  #deferred: Array<DeferredReply> = []

  /** Counts a change of the state. */
  changed(now: number): void {
    this.#changes += 1
    this.#since = Math.min(this.#since, now)
    this.#notStartedSince = Math.min(this.#notStartedSince, now)
  }

  /** Age of the oldest unwritten change, milliseconds. */
  delayMillis(now: number): number {
    return Math.max(0, now - this.#since)
  }

  /** Holds a reply back until all changes so far are written. */
  defer(node: string, reply: RoomOutput): void {
    this.#deferred.push({ node, reply, changes: this.#changes })
  }

  get hasReplies(): boolean {
    return this.#deferred.length > 0
  }

  /** Begins a write; pass the result, the number of changes it covers, to `commitWrite`. */
  beginWrite(): number {
    this.#notStartedSince = Number.POSITIVE_INFINITY
    return this.#changes
  }

  /** Ends a write, and returns the replies that waited for it. */
  commitWrite(changes: number): ReadonlyArray<DeferredReply> {
    this.#since = this.#notStartedSince
    const due = this.#deferred.filter((deferred) => deferred.changes <= changes)
    if (due.length > 0) {
      this.#deferred = this.#deferred.filter((deferred) => deferred.changes > changes)
    }
    return due
  }
}
