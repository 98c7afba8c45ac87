/**
 * Digest of the rows of a table, in any order: the sum of the SHA-256 of each row. The database returns the
 * rows of a restored table in another order.
 */
import { hash } from "node:crypto"

const mask = (1n << 256n) - 1n

export class RowDigest {
  #sum = 0n
  rows = 0

  /** Adds the text of a row. */
  add(row: string): void {
    this.rows += 1
    this.#sum = (this.#sum + BigInt(`0x${hash("sha256", row, "hex")}`)) & mask
  }

  get value(): string {
    return this.#sum.toString(16).padStart(64, "0")
  }
}
