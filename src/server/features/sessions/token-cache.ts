/**
 * LRU cache of verified access tokens, keyed by the SHA-256 of the token. It holds tokens that this node
 * signed or verified, so a repeated token costs a lookup instead of a signature check.
 */
import type { PlayerCaller } from "#rpc/auth"

export class TokenCache {
  readonly #callers = new Map<string, PlayerCaller>()
  readonly #capacity: number

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#callers.size
  }

  /** Returns the caller even if the token has expired. Compare `expiresAt`. */
  get(hash: string): PlayerCaller | undefined {
    const caller = this.#callers.get(hash)
    if (caller === undefined) return undefined
    this.#callers.delete(hash)
    this.#callers.set(hash, caller)
    return caller
  }

  set(hash: string, caller: PlayerCaller): void {
    this.#callers.set(hash, caller)
    if (this.#callers.size <= this.#capacity) return
    const [oldest] = this.#callers.keys()
    if (oldest !== undefined) this.#callers.delete(oldest)
  }

  delete(hash: string): void {
    this.#callers.delete(hash)
  }
}
