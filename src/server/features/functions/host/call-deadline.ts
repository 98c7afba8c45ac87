/**
 * The time that a call has until the headers of its response. It starts again whenever a part of the body
 * moves, since an upload takes as long as the network of the client needs. The whole upload is bounded, too.
 */
import type { IncomingMessage } from "node:http"
import { functionRuntime as limits } from "#rpc/function-runtime-limits"
import { http } from "#rpc/limits"

/** Milliseconds that the body of a request may take: one of unknown size may be the largest. */
export const uploadMillis = ({ headers }: Pick<IncomingMessage, "headers">): number => {
  const length = Number(headers["content-length"] ?? limits.bodyMaxBytes)
  const bytes = Math.min(length, limits.bodyMaxBytes)
  return limits.answerMillis + (bytes / http.slowestBytesPerSecond) * 1000
}

export class CallDeadline {
  readonly #idle: NodeJS.Timeout
  readonly #whole: NodeJS.Timeout
  #hasEnded = false

  /** Calls `onLate` when nothing has moved for `idleMillis`, or `wholeMillis` later in any case. */
  constructor(idleMillis: number, wholeMillis: number, onLate: () => void) {
    const late = (): void => {
      this.end()
      onLate()
    }
    this.#idle = setTimeout(late, idleMillis)
    this.#whole = setTimeout(late, idleMillis + wholeMillis)
  }

  /** A part of the body has moved. */
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
