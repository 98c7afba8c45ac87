/**
 * Calls that wait for their replies, by `rid`. Each is settled once, by its reply or by the end of the
 * connection, unless its caller gave up.
 */
import type { Reply } from "#rpc/realtime"

/** Receives the reply, or undefined when the connection ended first. */
export type Settle = (reply: Reply | undefined) => void

export interface PendingReplies {
  /** Registers a call and returns its new `rid`. */
  readonly add: (settle: Settle) => string
  /** The caller gave up: ignores a late reply. */
  readonly forget: (rid: string) => void
  readonly settle: (reply: Reply) => void
  /** The connection ended: settles every call without a reply. */
  readonly end: () => void
}

export const makePendingReplies = (): PendingReplies => {
  const waiting = new Map<string, Settle>()
  let last = 0
  const take = (rid: string): Settle | undefined => {
    const settle = waiting.get(rid)
    waiting.delete(rid)
    return settle
  }
  return {
    add: (settle) => {
      const rid = String(++last)
      waiting.set(rid, settle)
      return rid
    },
    forget: (rid) => {
      waiting.delete(rid)
    },
    settle: (reply) => take(reply.rid)?.(reply),
    end: () => {
      for (const rid of Array.from(waiting.keys())) take(rid)?.(undefined)
    }
  }
}
