/**
 * Whether a process may trust what it knows of its shards. One that was frozen for longer than its
 * locks last may have lost them without noticing: it doubts, until the locks have been asked for anew.
 * Time is the time of day, which goes on while a machine sleeps; a monotonic clock does not.
 */
export class PauseDetector {
  readonly #gapMillis: number
  readonly #now: () => number
  #awakeAt: number
  #doubtful = false
  #times = 0

  constructor(gapMillis: number, now: () => number) {
    this.#gapMillis = gapMillis
    this.#now = now
    this.#awakeAt = now()
  }

  /** How often there was reason to doubt. */
  get pauses(): number {
    return this.#times
  }

  /** Is there doubt? To be asked often, and before anything is done as the owner. */
  get isUnconfirmed(): boolean {
    const now = this.#now()
    if (now - this.#awakeAt > this.#gapMillis) {
      this.#doubtful = true
      this.#times += 1
    }
    this.#awakeAt = now
    return this.#doubtful
  }

  /**
   * The locks are asked for. What this returns says that the answer has come, whichever locks it names:
   * those that are lost are given up with it. A failure is no answer.
   */
  beginRefresh(): () => void {
    const times = this.isUnconfirmed ? this.#times : Number.NaN
    return () => {
      if (this.#times === times) this.#doubtful = false
    }
  }
}
