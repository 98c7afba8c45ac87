/** Wait of a failed process before its next start: the more failures in a minute, the longer. */

const windowMillis = 60_000
const atOnce = 3
const firstDelayMillis = 100
const longestDelayMillis = 5000

export class RestartPace {
  readonly #now: () => number
  #failures: Array<number> = []

  constructor(now: () => number) {
    this.#now = now
  }

  failed(): void {
    const now = this.#now()
    this.#failures = this.#failures.filter((at) => now - at < windowMillis)
    this.#failures.push(now)
  }

  /** Milliseconds before the next start. */
  delay(): number {
    const now = this.#now()
    const recent = this.#failures.filter((at) => now - at < windowMillis).length
    if (recent <= atOnce) return 0
    return Math.min(longestDelayMillis, firstDelayMillis * 2 ** (recent - atOnce - 1))
  }
}
