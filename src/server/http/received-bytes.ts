/**
 * Copy of the received bytes of a body, in one piece. It returns memory that it does not need any
 * more to the system at once. Otherwise bodies that arrive quickly would take a multiple of their
 * budget until the next garbage collection. They would also cause collections that delay everyone.
 */

export class ReceivedBytes {
  #bytes: Buffer = Buffer.alloc(0)
  /** The bytes are a copy of this object, not a piece that Node has read, which others may look at. */
  #own = false
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Appends a piece; returns by how many bytes the copy has grown. */
  append(piece: Buffer): number {
    const before = this.#bytes.length
    const length = this.#length + piece.length
    if (this.#length === 0) this.#bytes = piece
    else {
      if (length > before) this.#grow(Math.max(2 * before, length))
      piece.copy(this.#bytes, this.#length)
    }
    this.#length = length
    return this.#bytes.length - before
  }

  /** Returns all bytes, and passes their ownership to the caller. */
  take(): ArrayBuffer {
    const length = this.#length
    const { buffer, byteOffset } = this.#bytes
    if (buffer instanceof ArrayBuffer && byteOffset === 0 && buffer.byteLength === length) {
      this.#own = false
      this.free()
      return buffer
    }
    const whole = Uint8Array.from(this.#bytes.subarray(0, length)).buffer
    this.free()
    return whole
  }

  /** Releases the bytes. */
  free(): void {
    const { buffer } = this.#bytes
    if (this.#own && buffer instanceof ArrayBuffer) buffer.transfer(0)
    this.#bytes = Buffer.alloc(0)
    this.#own = false
    this.#length = 0
  }

  #grow(size: number): void {
    const length = this.#length
    const grown = Buffer.allocUnsafeSlow(size)
    this.#bytes.copy(grown, 0, 0, length)
    this.free()
    this.#bytes = grown
    this.#own = true
    this.#length = length
  }
}
