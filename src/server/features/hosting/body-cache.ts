/** LRU cache of the bodies of small files in memory. */

export class BodyCache {
  readonly #maxBytes: number
  readonly #bodies = new Map<string, Buffer>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  get(key: string): Buffer | undefined {
    const body = this.#bodies.get(key)
    if (body === undefined) return undefined
    this.#bodies.delete(key)
    this.#bodies.set(key, body)
    return body
  }

  set(key: string, body: Buffer): void {
    if (this.#bodies.has(key)) return
    this.#bodies.set(key, body)
    this.#bytes += body.length
    for (const [oldest, { length }] of this.#bodies) {
      if (this.#bytes <= this.#maxBytes) return
      this.#bodies.delete(oldest)
      this.#bytes -= length
    }
  }
}
