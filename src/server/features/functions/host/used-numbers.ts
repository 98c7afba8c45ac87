/**
 * Numbers of calls that were used, so that a call that somebody has recorded cannot be sent again. Calls
 * overtake each other, so a window behind the newest number is remembered; what is older counts as used.
 */

/** Far more than the calls that are under way at once. */
const remembered = 65_536
const bits = 32

export class UsedNumbers {
  readonly #used = new Uint32Array(remembered / bits)
  #newest = 0

  /** Marks a number as used; returns whether it was new. */
  use(number: number): boolean {
    if (!Number.isSafeInteger(number) || number <= this.#newest - remembered) return false
    const first = Math.max(this.#newest, number - remembered) + 1
    for (let next = first; next <= number; next += 1) this.#clear(next)
    this.#newest = Math.max(this.#newest, number)
    const slot = Math.trunc((number % remembered) / bits)
    const bit = 1 << (number % bits)
    const word = this.#used[slot] ?? 0
    this.#used[slot] = word | bit
    return (word & bit) === 0
  }

  #clear(number: number): void {
    const slot = Math.trunc((number % remembered) / bits)
    this.#used[slot] = (this.#used[slot] ?? 0) & ~(1 << (number % bits))
  }
}
