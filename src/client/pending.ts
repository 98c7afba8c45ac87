/**
 * Calls that wait for their replies, by `rid` (decisions 3.6.2). Each is settled once: by its reply,
 * by the end of the connection, or by nobody because its caller gave up.
 */
import type { Reply } from "#rpc/realtime"

/** Told the reply, or undefined when the connection ended before it came. */
export type Settle = (reply: Reply | undefined) => void

export interface PendingReplies {
  /** Waits for the reply to a new `rid`, and answers the `rid`. */
  readonly add: (settle: Settle) => string
  /** The caller gave up: a late reply is not heard. */
  readonly forget: (rid: string) => void
  readonly settle: (reply: Reply) => void
  /** The connection ended: no reply will come. */
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
