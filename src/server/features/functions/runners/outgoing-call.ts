/**
 * Call to another runner. That runner signals its begin before it gets the body. Until then the call
 * may go elsewhere.
 */
import {
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request
} from "node:http"
import { functionRuntime as limits } from "#rpc/function-runtime-limits"
import { CallDeadline } from "../host/call-deadline.ts"
import type { RunnerConnections } from "./connections.ts"
import { isMoved } from "./proxy-protocol.ts"

/** Runner that receives a call. */
export interface Way {
  readonly connections: RunnerConnections
  readonly address: string
  /** Callbacks for the moment when that runner has certainly lost the environment. */
  readonly watchers: Set<() => void>
}

/** Error: the other runner has not taken the call. */
export class Moved extends Error {}

export interface CallOptions {
  readonly method: string | undefined
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  /** Milliseconds that the body may take while it makes progress. */
  readonly uploadMillis?: number
  /** Sends the body and ends the request. */
  readonly onBegin: (sent: ClientRequest) => void
}

export class OutgoingCall {
  readonly #sent: ClientRequest
  readonly #watchers: Set<() => void>
  readonly #deadline: CallDeadline
  #hasBegun = false
  /** Ends the call. */
  readonly end = (): void => {
    this.#deadline.end()
    this.#watchers.delete(this.end)
    this.#sent.destroy()
  }

  constructor({ address, connections, watchers }: Way, options: CallOptions) {
    const { headers, method, onBegin, path } = options
    this.#sent = request({
      ...connections.to(address),
      method,
      path,
      headers: { ...headers, expect: "100-continue" }
    })
    this.#watchers = watchers.add(this.end)
    this.#deadline = new CallDeadline(
      limits.passedAnswerMillis,
      options.uploadMillis ?? 0,
      this.end
    )
    this.#sent.once("continue", () => {
      this.#hasBegun = true
      watchers.delete(this.end)
      onBegin(this.#sent)
    })
    this.#sent.flushHeaders()
  }

  /** Restarts the deadline after a part of the body has moved. */
  progressed(): void {
    this.#deadline.progressed()
  }

  /** Returns the answer; fails with {@link Moved} if the call has not begun. */
  async answer(): Promise<IncomingMessage> {
    try {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        this.#sent.once("response", resolve)
        this.#sent.on("error", reject)
        this.#sent.once("close", () => reject(new Error("The connection has ended.")))
      })
      this.#deadline.end()
      this.#watchers.delete(this.end)
      if (!isMoved(answer)) return answer
      this.#hasBegun = false
      throw new Moved()
    } catch (error) {
      throw this.#hasBegun ? error : new Moved()
    }
  }
}
