/**
 * Buffers for pieces of files on their way to clients. The pool reuses them. New buffers for each piece
 * would occupy memory outside of V8's heap, which makes V8 collect the whole heap repeatedly.
 */

/** Sizes of pieces, and the number of pieces of each size. */
export interface PieceSizes {
  /** Bytes of a large piece, for a client that reads. `largeMax` bounds the number in use. */
  readonly largeBytes: number
  readonly largeMax: number
  /**
   * Bytes of a small piece, for few bytes or when all large ones are in use. `smallKept` bounds the
   * number kept for reuse.
   */
  readonly smallBytes: number
  readonly smallKept: number
}

/** Buffer that its owner returns, or abandons if an operation may still read it. */
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

  /** Takes a buffer for `bytes` bytes. The buffer may be smaller or larger. */
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
