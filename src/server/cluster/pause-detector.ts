/**
 * Detects that the process was paused (SIGSTOP, a suspended machine) for longer than its shard locks
 * last. From then on ownership is unconfirmed, until the locks have been refreshed.
 *
 * Uses the time of day, which goes on while a machine sleeps; a monotonic clock does not.
 */
export class PauseDetector {
  readonly #gapMillis: number
  readonly #now: () => number
  #awakeAt: number
  #unconfirmed = false
  #pauses = 0

  constructor(gapMillis: number, now: () => number) {
    this.#gapMillis = gapMillis
    this.#now = now
    this.#awakeAt = now()
  }

  /** Number of pauses so far. */
  get pauses(): number {
    return this.#pauses
  }

  /** Whether ownership is unconfirmed. Poll this, and read it before every action of an owner. */
  get isUnconfirmed(): boolean {
    const now = this.#now()
    if (now - this.#awakeAt > this.#gapMillis) {
      this.#unconfirmed = true
      this.#pauses += 1
    }
    this.#awakeAt = now
    return this.#unconfirmed
  }

  /**
   * Begins a refresh of the locks; call the result when the refresh has succeeded. That confirms the
   * ownership unless the process was paused meanwhile. Locks that the refresh does not return are lost,
   * and their shards are given up with it.
   */
  beginRefresh(): () => void {
    const pauses = this.isUnconfirmed ? this.#pauses : Number.NaN
    return () => {
      if (this.#pauses === pauses) this.#unconfirmed = false
    }
  }
}
