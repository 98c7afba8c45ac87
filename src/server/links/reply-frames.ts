/** Replies and warnings as frames of the JSON protocol. */
import { type CodedError, toWire } from "#rpc/errors/codes"
import type { Reply, Warn } from "#rpc/realtime"
import { Frame } from "#server/platform/socket-outbox"
import type { CommandResult } from "./entity-link.ts"

/** The reply to the frame with this `rid`. */
export const replyFrame = (rid: string, result: CommandResult<unknown>): Frame => {
  const reply: Reply = result.ok
    ? { t: "reply", rid, ok: true, data: result.data }
    : { t: "reply", rid, ok: false, error: toWire(result.error) }
  return Frame.of(reply)
}

/** Reports the failure of a frame without `rid`. */
export const warnFrame = (error: CodedError): Frame => {
  const warning: Warn = { t: "warn", ...toWire(error) }
  return Frame.of(warning)
}
