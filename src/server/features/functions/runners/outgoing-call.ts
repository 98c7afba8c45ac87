/**
 * A call to another runner. That runner says when it begins, before it gets the body: until then the call may
 * go elsewhere.
 */
import {
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request
} from "node:http"
import { functionRuntime as limits } from "#rpc/function-runtime-limits"
import type { RunnerConnections } from "./connections.ts"
import { isMoved } from "./forwarded.ts"

/** The runner to which a call goes. */
export interface Way {
  readonly connections: RunnerConnections
  readonly address: string
  /** Called when that runner surely has the environment no more. */
  readonly watchers: Set<() => void>
}

/** The other runner has not taken the call. */
export class Moved extends Error {}

export interface CallOptions {
  readonly method: string | undefined
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  /** Sends the body and ends the request. */
  readonly onBegin: (sent: ClientRequest) => void
}

const answerMillis = limits.answerMillis * 2

export class OutgoingCall {
  readonly #sent: ClientRequest
  readonly #watchers: Set<() => void>
  readonly #deadline: NodeJS.Timeout
  #hasBegun = false
  /** Ends the call. */
  readonly end = (): void => {
    clearTimeout(this.#deadline)
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
    this.#deadline = setTimeout(this.end, answerMillis)
    this.#sent.once("continue", () => {
      this.#hasBegun = true
      watchers.delete(this.end)
      onBegin(this.#sent)
    })
    this.#sent.flushHeaders()
  }

  /** The answer; fails with {@link Moved} if the call has not begun. */
  async answer(): Promise<IncomingMessage> {
    try {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        this.#sent.once("response", resolve)
        this.#sent.on("error", reject)
        this.#sent.once("close", () => reject(new Error("The connection has ended.")))
      })
      clearTimeout(this.#deadline)
      this.#watchers.delete(this.end)
      if (!isMoved(answer)) return answer
      this.#hasBegun = false
      throw new Moved()
    } catch (error) {
      throw this.#hasBegun ? error : new Moved()
    }
  }
}
