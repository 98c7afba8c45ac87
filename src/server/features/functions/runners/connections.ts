/** Pooled HTTP connections to other runners. */
import { Agent, type OutgoingHttpHeaders, type RequestOptions } from "node:http"
import type { Duplex } from "node:stream"
import { functionLeases } from "#rpc/functions/runtime-limits"
import type { CallSeal, SealedCall } from "./call-seal.ts"

/** Opens an authenticated connection to a runner. */
export type Dial = (address: string) => Promise<Duplex>

/** Parses `host:port`. The host may contain colons. */
const endOf = (address: string): { readonly host: string; readonly port: number } => {
  const colon = address.lastIndexOf(":")
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
}

class DialingAgent extends Agent {
  readonly #dial: Dial

  constructor(dial: Dial) {
    super({
      keepAlive: true,
      maxFreeSockets: functionLeases.idleConnections,
      timeout: functionLeases.idleConnectionMillis
    })
    this.#dial = dial
  }

  override createConnection(
    { host, port }: RequestOptions,
    callback?: (error: Error | null, stream: Duplex) => void
  ): undefined {
    this.#dial(`${host}:${port}`).then(
      (socket) => callback?.(null, socket),
      // Node reads no socket beside an error.
      (error: Error) => Reflect.apply(callback ?? (() => undefined), undefined, [error])
    )
  }
}

/** Id of a receiver that is not known yet. */
const unmet = ""

export class RunnerConnections {
  readonly #agent: DialingAgent
  readonly #dial: Dial
  readonly #seal: CallSeal
  /** Ids of the processes at the addresses of other runners. */
  readonly #receivers = new Map<string, string>()
  /** Requests in progress by environment. */
  readonly #underWay = new Map<string, number>()

  constructor(dial: Dial, seal: CallSeal) {
    this.#dial = dial
    this.#seal = seal
    this.#agent = new DialingAgent(dial)
  }

  /** Returns the headers of a call to a runner. */
  sealed(address: string, call: SealedCall): OutgoingHttpHeaders {
    return this.#seal.headersOf(this.#receivers.get(address) ?? unmet, call)
  }

  /** Remembers which process is at an address. */
  met(address: string, receiver: string): void {
    this.#receivers.delete(address)
    this.#receivers.set(address, receiver)
    const [oldest] = this.#receivers.keys()
    if (this.#receivers.size > functionLeases.sendersRemembered && oldest !== undefined) {
      this.#receivers.delete(oldest)
    }
  }

  /** Returns the request options for a runner. */
  to(address: string): RequestOptions {
    return { agent: this.#agent, ...endOf(address) }
  }

  /** Opens a connection for one socket of a client. */
  async open(address: string): Promise<RequestOptions> {
    const socket = await this.#dial(address)
    socket.on("error", () => undefined)
    return { createConnection: () => socket, ...endOf(address) }
  }

  /** Counts a request of an environment; returns a function that ends it, or undefined at the limit. */
  enter(environmentId: string): (() => void) | undefined {
    const count = this.#underWay.get(environmentId) ?? 0
    if (count >= functionLeases.passedMax) return undefined
    this.#underWay.set(environmentId, count + 1)
    return () => {
      const left = (this.#underWay.get(environmentId) ?? 1) - 1
      if (left === 0) this.#underWay.delete(environmentId)
      else this.#underWay.set(environmentId, left)
    }
  }

  close(): void {
    this.#agent.destroy()
  }
}
