/**
 * Buffers for pieces of files that are on their way to clients. They are used again: a new one for each
 * piece would be memory outside of V8's heap, for which V8 collects the whole heap over and over.
 */

/** How many bytes pieces have, and how many of them there are. */
export interface PieceSizes {
  /** A piece of a client that reads; so many at a time. */
  readonly largeBytes: number
  readonly largeMax: number
  /** A piece when all large ones are in use; so many are kept for later. */
  readonly smallBytes: number
  readonly smallKept: number
}

/** A buffer that its owner gives back, or abandons if somebody may still read it. */
export interface Piece {
  readonly buffer: Buffer
  readonly giveBack: () => void
  readonly abandon: () => void
}

export class BufferPool {
  readonly #sizes: PieceSizes
  readonly #large: Array<Buffer> = []
  readonly #small: Array<Buffer> = []
  #largeInUse = 0

  constructor(sizes: PieceSizes) {
    this.#sizes = sizes
  }

  /** Takes a buffer for so many bytes or fewer. */
  take(bytes: number): Piece {
    const { largeBytes, largeMax, smallBytes, smallKept } = this.#sizes
    if (bytes <= smallBytes || this.#largeInUse >= largeMax) {
      const buffer = this.#small.pop() ?? Buffer.allocUnsafeSlow(smallBytes)
      const giveBack = () => {
        if (this.#small.length < smallKept) this.#small.push(buffer)
      }
      return { buffer, giveBack, abandon: () => {} }
    }
    this.#largeInUse += 1
    const buffer = this.#large.pop() ?? Buffer.allocUnsafeSlow(largeBytes)
    const abandon = () => {
      this.#largeInUse -= 1
    }
    const giveBack = () => {
      abandon()
      this.#large.push(buffer)
    }
    return { buffer, giveBack, abandon }
  }
}
