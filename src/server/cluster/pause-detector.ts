/**
 * Detects that the process was paused (SIGSTOP, a suspended machine) for longer than its shard locks
 * last. From then on ownership is unconfirmed, until the locks have been refreshed.
 *
 * A pause is the larger gap of two clocks. The time of day may be set back during a pause, and a
 * monotonic clock may stand still while the machine sleeps.
 */
export class PauseDetector {
  readonly #gapMillis: number
  readonly #clocks: ReadonlyArray<() => number>
  #awakeAt: ReadonlyArray<number>
  #pauses = 0
  /** Number of pauses that a refresh of the locks has followed. */
  #confirmed = 0

  /** Makes a detector with clocks in milliseconds. */
  constructor(gapMillis: number, clocks: ReadonlyArray<() => number>) {
    this.#gapMillis = gapMillis
    this.#clocks = clocks
    this.#awakeAt = clocks.map((now) => now())
  }

  /** Number of pauses so far. */
  get pauses(): number {
    return this.#pauses
  }

  /** Whether ownership is unconfirmed. Poll this, and read it before every action of an owner. */
  get isUnconfirmed(): boolean {
    const now = this.#clocks.map((read) => read())
    if (now.some((time, i) => time - (this.#awakeAt[i] ?? time) > this.#gapMillis)) {
      this.#pauses += 1
    }
    this.#awakeAt = now
    return this.#pauses > this.#confirmed
  }

  /**
   * Starts a refresh of the locks. Call the result when the refresh has succeeded. That confirms
   * the ownership unless the process was paused meanwhile. Locks that the refresh does not return
   * are lost, and the process gives up their shards.
   */
  beginRefresh(): () => void {
    const pauses = this.isUnconfirmed ? this.#pauses : this.#confirmed
    return () => {
      this.#confirmed = pauses
    }
  }
}
