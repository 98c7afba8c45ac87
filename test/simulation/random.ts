/** The only source of randomness of a simulation, derived from its seed. */

/** A stream of pseudo-random numbers (sfc32): the same seed, the same numbers, on every machine. */
export class Chance {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number, stream = 0) {
    this.#a = seed | 0
    this.#b = (seed / 2 ** 32) | 0
    this.#c = stream | 0
    for (let i = 0; i < 12; i++) this.#next()
  }

  #next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum
    return sum >>> 0
  }

  /** A number from 0 (included) to 1 (excluded). */
  fraction(): number {
    return this.#next() / 2 ** 32
  }

  /** An integer from `min` to `max`, both included. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1))
  }

  /** True with this probability. */
  happens(probability: number): boolean {
    return this.fraction() < probability
  }

  /** One of these; undefined if there are none. */
  pick<A>(among: ReadonlyArray<A>): A | undefined {
    return among[this.integer(0, among.length - 1)]
  }

  bytes(size: number): Uint8Array {
    return Uint8Array.from({ length: size }, () => this.#next() & 0xff)
  }
}
