/**
 * What a room has changed since its state was last written, and the answers that are not given before
 * the state that they speak of is written.
 */
import type { RoomOutput } from "./messages.ts"

interface Withheld {
  readonly node: string
  readonly answer: RoomOutput
  /** The number of changes that are behind it. */
  readonly changes: number
}

export class PendingWrites {
  #changes = 0
  /** When the oldest change was made that is not written. */
  #since = Number.POSITIVE_INFINITY
  /** The same, of those that are not on their way either. */
  #untakenSince = Number.POSITIVE_INFINITY
  #withheld: Array<Withheld> = []

  /** The state has changed. */
  changed(now: number): void {
    this.#changes += 1
    this.#since = Math.min(this.#since, now)
    this.#untakenSince = Math.min(this.#untakenSince, now)
  }

  /** For how long a change has waited to be written, in milliseconds. */
  millis(now: number): number {
    return Math.max(0, now - this.#since)
  }

  withhold(node: string, answer: RoomOutput): void {
    this.#withheld.push({ node, answer, changes: this.#changes })
  }

  /** Do answers wait? */
  get waited(): boolean {
    return this.#withheld.length > 0
  }

  /** The state is about to be written: what `saved` wants to be told once it is. */
  beginWrite(): number {
    this.#untakenSince = Number.POSITIVE_INFINITY
    return this.#changes
  }

  /** The state of so many changes is written: the answers that can be given now. */
  commitWrite(changes: number): ReadonlyArray<Withheld> {
    this.#since = this.#untakenSince
    const due = this.#withheld.filter((withheld) => withheld.changes <= changes)
    if (due.length > 0) {
      this.#withheld = this.#withheld.filter((withheld) => withheld.changes > changes)
    }
    return due
  }
}
