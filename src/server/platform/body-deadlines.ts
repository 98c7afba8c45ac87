/**
 * Deadlines of request bodies. Node has one timeout for all requests, but the body of an upload takes
 * longer than that of a call; its handler extends the deadline by the expected size.
 */
import type { IncomingMessage } from "node:http"

interface Deadline {
  timer: NodeJS.Timeout
  readonly onLate: () => void
}

const deadlines = new WeakMap<IncomingMessage, Deadline>()

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0"

const start = (request: IncomingMessage, millis: number, onLate: () => void): NodeJS.Timeout =>
  setTimeout(() => {
    if (!request.complete) onLate()
  }, millis)

/** Calls `onLate` unless the body of the request ends in time. */
export const startBodyDeadline = (
  request: IncomingMessage,
  millis: number,
  onLate: () => void
): void => {
  if (!hasBody(request) || millis === 0) return
  const deadline: Deadline = { timer: start(request, millis, onLate), onLate }
  deadlines.set(request, deadline)
  request.once("close", () => clearTimeout(deadline.timer))
}

/** Starts the deadline of a request again, with another time. */
export const extendBodyDeadline = (request: IncomingMessage, millis: number): void => {
  const deadline = deadlines.get(request)
  if (deadline === undefined) return
  clearTimeout(deadline.timer)
  deadline.timer = start(request, millis, deadline.onLate)
}
