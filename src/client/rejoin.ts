/** Return of a room or a channel to its members after a new connection. */
import type { Core } from "./core.ts"
import { codeOf } from "./errors.ts"
import type { FramePayload } from "./frames.ts"
import { retry } from "./timers.ts"

/** A room or channel that moves to another runner cannot be joined for a moment. */
const firstMillis = 250
export const rejoinMillis = 20_000
const transientErrors: ReadonlyArray<string | undefined> = ["unavailable", "rate_limited"]

/** Sends the frame until the service accepts it, and ends the view when it does not. */
export const rejoin = async <F extends "resume" | "channelJoin">(
  { connection, timers }: Core,
  frame: F,
  payload: FramePayload<F>,
  view: { end(closed: { readonly reason: string }): void }
): Promise<void> => {
  try {
    await retry(
      timers,
      () => connection.transport.call(frame, payload, rejoinMillis),
      (error) => transientErrors.includes(codeOf(error)),
      firstMillis,
      rejoinMillis
    )
  } catch (error) {
    const reason = codeOf(error) ?? "failed"
    if (reason !== "disconnected") view.end({ reason })
  }
}
