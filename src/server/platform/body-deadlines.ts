/**
 * Deadlines of request bodies. Node has one timeout for all requests, but the body of an upload
 * takes longer than that of a call. So the handler of an upload extends the deadline by the
 * expected size.
 */
import { IncomingMessage } from "node:http"

/** Whether a request has a body, or may have one. */
export const hasBody = ({
  headers
}: {
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
}): boolean =>
  headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0"

/**
 * A request whose body may have a deadline. A field holds it: what a `WeakMap` refers to survives the
 * collections of the young generation, and the deadline refers to the request.
 */
export class TimedMessage extends IncomingMessage {
  #timer: NodeJS.Timeout | undefined
  #onLate: (() => void) | undefined

  /** Starts the deadline of the body, which calls `onLate` unless the body ends in time. */
  startBodyDeadline(millis: number, onLate: () => void): void {
    if (!hasBody(this) || millis === 0) return
    this.#onLate = onLate
    this.extendBodyDeadline(millis)
  }

  /** Starts the deadline again, with another time. */
  extendBodyDeadline(millis: number): void {
    const onLate = this.#onLate
    if (onLate === undefined) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (!this.complete) onLate()
    }, millis)
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#timer)
    this.#onLate = undefined
    super._destroy(error, callback)
  }
}

/** Starts the deadline of a request's body again, with another time. */
export const extendBodyDeadline = (request: IncomingMessage, millis: number): void => {
  if (request instanceof TimedMessage) request.extendBodyDeadline(millis)
}
