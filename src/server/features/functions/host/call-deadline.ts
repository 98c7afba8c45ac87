/**
 * Deadline of a call until the response headers. It restarts whenever part of the body moves, since an
 * upload takes as long as the client's network needs. A second bound limits the whole upload.
 */
import type { IncomingMessage } from "node:http"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { http } from "#rpc/limits"

/**
 * Returns the milliseconds that the body of a request may take. A body of unknown size gets the time of
 * the largest.
 */
export const uploadMillis = ({ headers }: Pick<IncomingMessage, "headers">): number => {
  const length = Number(headers["content-length"] ?? functionRuntime.bodyMaxBytes)
  const bytes = Math.min(length, functionRuntime.bodyMaxBytes)
  return functionRuntime.responseMillis + (bytes / http.slowestBytesPerSecond) * 1000
}

export class CallDeadline {
  readonly #idle: NodeJS.Timeout
  readonly #whole: NodeJS.Timeout
  #hasEnded = false

  /**
   * Calls `onLate` after `idleMillis` without progress, or after `idleMillis + wholeMillis` in any
   * case.
   */
  constructor(idleMillis: number, wholeMillis: number, onLate: () => void) {
    const late = (): void => {
      this.end()
      onLate()
    }
    this.#idle = setTimeout(late, idleMillis)
    this.#whole = setTimeout(late, idleMillis + wholeMillis)
  }

  /** Restarts the deadline after a part of the body has moved. */
  progressed(): void {
    // A timer that was cleared would start again.
    if (!this.#hasEnded) this.#idle.refresh()
  }

  end(): void {
    this.#hasEnded = true
    clearTimeout(this.#idle)
    clearTimeout(this.#whole)
  }
}
