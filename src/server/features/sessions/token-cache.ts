/**
 * Access tokens that were signed on this node, or whose signature was checked here, by the SHA-256 of
 * the token: a hot token costs a look-up, not a signature check. Bounded; the one unused for longest
 * makes room.
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

  /** The caller of a token, the end of its life included: the time is the asker's to compare. */
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
