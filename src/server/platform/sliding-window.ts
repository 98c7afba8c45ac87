/**
 * Sliding window: at most `limit` events in any span of `windowMillis`, however they fall.
 *
 * The window is divided into slots, each with a counter. An event counts until its whole slot has left
 * the window, so the window never counts too few; a place is free again at most one slot late.
 */

/** Slots of one window: a place is free again at most a sixtieth of the window late. */
export const slotsPerWindow = 60

/** The number of the slot that contains a time, counted from the epoch of the clock. */
export const slotAt = (now: number, windowMillis: number): number =>
  Math.floor((now * slotsPerWindow) / windowMillis)

/** When the events of a slot stop counting. */
export const slotExpiry = (slot: number, windowMillis: number): number =>
  ((slot + 1 + slotsPerWindow) * windowMillis) / slotsPerWindow

/** The window in memory, for one process: a ring of counters, whatever the limit. */
export class SlidingWindow {
  readonly #limit: number
  readonly #windowMillis: number
  /** The current slot and all that still count; the counter of `slot` is at `slot % length`. */
  readonly #counts = new Uint32Array(slotsPerWindow + 1)
  #slot = Number.NEGATIVE_INFINITY
  #total = 0

  constructor(limit: number, windowMillis: number) {
    this.#limit = limit
    this.#windowMillis = windowMillis
  }

  /** Counts events if all of them fit; `now` is of a monotonic clock. */
  take(now: number, events = 1): boolean {
    this.#advance(slotAt(now, this.#windowMillis))
    if (this.#total + events > this.#limit) return false
    this.#total += events
    const index = this.#slot % this.#counts.length
    this.#counts[index] = (this.#counts[index] ?? 0) + events
    return true
  }

  /** Milliseconds until one event fits. */
  retryAfterMillis(now: number): number {
    this.#advance(slotAt(now, this.#windowMillis))
    if (this.#total < this.#limit) return 0
    const { length } = this.#counts
    for (let slot = this.#slot - slotsPerWindow; slot <= this.#slot; slot++) {
      const count = this.#counts[((slot % length) + length) % length] ?? 0
      if (count > 0) return slotExpiry(slot, this.#windowMillis) - now
    }
    return this.#windowMillis
  }

  /** Forgets the slots that no longer count. A clock that steps back changes nothing. */
  #advance(slot: number): void {
    if (slot <= this.#slot) return
    const { length } = this.#counts
    if (slot - this.#slot >= length) {
      this.#counts.fill(0)
      this.#total = 0
    } else {
      for (let next = this.#slot + 1; next <= slot; next++) {
        this.#total -= this.#counts[next % length] ?? 0
        this.#counts[next % length] = 0
      }
    }
    this.#slot = slot
  }
}
