/**
 * Secure random bytes from the system, drawn in blocks. Ids and tokens need a few bytes each, for
 * which a system call costs several times as much as a share of a block. The source returns no byte
 * twice, and wipes the bytes that it has returned.
 */
import { randomFillSync } from "node:crypto"
import { Layer } from "effect"
import { SecureRandom } from "effect/crypto"

const blockBytes = 4096
/** Size above which requests get bytes of their own; they are rare. */
const shareMaxBytes = 256

export class RandomBlock {
  readonly #fill: (bytes: Uint8Array) => void
  readonly #block = new Uint8Array(blockBytes)
  #used = blockBytes

  constructor(fill: (bytes: Uint8Array) => void) {
    this.#fill = fill
  }

  /** The next bytes, as an array of their own. */
  take(size: number): Uint8Array {
    if (size > shareMaxBytes) {
      const bytes = new Uint8Array(size)
      this.#fill(bytes)
      return bytes
    }
    if (this.#used + size > blockBytes) {
      this.#fill(this.#block)
      this.#used = 0
    }
    const start = this.#used
    this.#used += size
    const bytes = this.#block.slice(start, this.#used)
    this.#block.fill(0, start, this.#used)
    return bytes
  }
}

/** The random bytes of the service. */
export const SecureRandomLive = Layer.sync(SecureRandom.SecureRandom, () => {
  const block = new RandomBlock(randomFillSync)
  return SecureRandom.make((size) => block.take(size))
})
