/**
 * Signed ids of calls. The egress worker counts the requests of a call by its id. The player's code
 * sees ids but cannot forge one.
 */
import { createHmac, createSecretKey, type KeyObject } from "node:crypto"

export class CallTokens {
  readonly #key: KeyObject
  readonly #lifetimeMillis: number
  #last = 0

  constructor(key: Uint8Array, lifetimeMillis: number) {
    this.#key = createSecretKey(key)
    this.#lifetimeMillis = lifetimeMillis
  }

  /** Returns the token of a call that begins at `now`, in milliseconds since 1970. */
  next(now: number): string {
    const text = `${++this.#last}.${Math.trunc(now) + this.#lifetimeMillis}`
    return `${text}.${createHmac("sha256", this.#key).update(text).digest("hex")}`
  }
}
