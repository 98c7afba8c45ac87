/**
 * Call to another runner. That runner signals its begin before it gets the body. Until then the call
 * may go elsewhere.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { CallDeadline } from "../host/call-deadline.ts"
import { OutgoingRequest } from "../host/outgoing-request.ts"
import type { SealedCall } from "./call-seal.ts"
import type { RunnerConnections } from "./connections.ts"
import { isMoved, isRefused, receiverOf } from "./proxy-protocol.ts"

/** Runner that receives a call. */
export interface RunnerTarget {
  readonly connections: RunnerConnections
  readonly address: string
  /** Callbacks for the moment when that runner has certainly lost the environment. */
  readonly watchers: Set<() => void>
}

/** Error: the other runner has not taken the call. */
export class NotAccepted extends Error {}

/** Error: the other runner does not take the call for one of its cluster. It logs that. */
export class SealRefused extends Error {}

/** Error: the call did not name the process of the other runner, whose id is known now. */
class Unmet extends Error {}

/** Throws unless a response comes from a runner that has taken the call. */
export const requireAccepted = (
  { address, connections }: RunnerTarget,
  message: IncomingMessage
): void => {
  const receiver = receiverOf(message)
  if (receiver !== undefined) {
    connections.met(address, receiver)
    throw new Unmet()
  }
  if (isMoved(message)) throw new NotAccepted()
  if (isRefused(message)) throw new SealRefused()
}

/** Runs a call, and once more if it has only learned which process it goes to. */
export const meeting = async <A>(run: () => Promise<A>): Promise<A> => {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof Unmet)) throw error
  }
  return run().catch((error: unknown) => {
    throw error instanceof Unmet ? new NotAccepted() : error
  })
}

export interface CallOptions {
  readonly call: SealedCall
  /** Headers besides those of the call. */
  readonly headers?: OutgoingHttpHeaders
  /** Milliseconds that the body may take while it makes progress. */
  readonly uploadMillis?: number
  /** Sends the body and ends the request. */
  readonly onBegin: (outgoing: OutgoingRequest) => void
}

export class OutgoingCall {
  readonly #target: RunnerTarget
  readonly #outgoing: OutgoingRequest
  readonly #deadline: CallDeadline
  #hasBegun = false
  /** Ends the call. */
  readonly end = (): void => {
    this.#deadline.end()
    this.#target.watchers.delete(this.end)
    this.#outgoing.end()
  }

  constructor(target: RunnerTarget, { call, headers, onBegin, uploadMillis = 0 }: CallOptions) {
    this.#target = target
    const { address, connections, watchers } = target
    const { framing, method, path } = call
    this.#outgoing = new OutgoingRequest({
      to: connections.to(address),
      method,
      path,
      framing,
      headers: { ...headers, ...connections.sealed(address, call), expect: "100-continue" }
    })
    watchers.add(this.end)
    this.#deadline = new CallDeadline(functionRuntime.passedResponseMillis, uploadMillis, this.end)
    this.#outgoing.sent.once("continue", () => {
      this.#hasBegun = true
      watchers.delete(this.end)
      onBegin(this.#outgoing)
    })
    this.#outgoing.sent.flushHeaders()
  }

  /** Restarts the deadline after a part of the body has moved. */
  progressed(): void {
    this.#deadline.progressed()
  }

  /** Returns the response; fails with {@link NotAccepted} if the call has not begun. */
  async response(): Promise<IncomingMessage> {
    try {
      const { message } = await this.#outgoing.response
      this.#deadline.end()
      this.#target.watchers.delete(this.end)
      requireAccepted(this.#target, message)
      return message
    } catch (error) {
      if (error instanceof Unmet || error instanceof NotAccepted || error instanceof SealRefused)
        throw error
      throw this.#hasBegun ? error : new NotAccepted()
    }
  }
}
