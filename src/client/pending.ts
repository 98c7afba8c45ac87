/**
 * Calls that wait for their replies, by `rid`. Each is settled once, by its reply or by the end of the
 * connection, unless its caller gave up.
 */
import type { Reply } from "./frames.ts"

/** Receives the reply, or undefined when the connection ended first. */
export type Settle = (reply: Reply | undefined) => void

export class PendingReplies {
  readonly #waiting = new Map<string, Settle>()
  #last = 0

  /** Registers a call and returns its new `rid`. */
  add(settle: Settle): string {
    const rid = String(++this.#last)
    this.#waiting.set(rid, settle)
    return rid
  }

  /** The caller gave up: ignores a late reply. */
  forget(rid: string): void {
    this.#waiting.delete(rid)
  }

  settle(reply: Reply): void {
    const settle = this.#waiting.get(reply.rid)
    this.forget(reply.rid)
    settle?.(reply)
  }

  /** The connection ended: settles every call without a reply. */
  end(): void {
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const settle of waiting) settle(undefined)
  }
}
