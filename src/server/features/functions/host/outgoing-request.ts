/**
 * The one maker of requests to processes of functions and to other runners. Each states its framing, has
 * its error listeners from the start, and ends once. Its connection serves another request only after
 * request and response are both complete.
 */
import {
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type RequestOptions
} from "node:http"
import { type Duplex, Transform } from "node:stream"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { type Framing, framingHeaders } from "./framing.ts"

/** Response to a request, with the connection if it has become a WebSocket. */
export interface OutgoingResponse {
  readonly message: IncomingMessage
  readonly upgraded?: { readonly upstream: Duplex; readonly head: Buffer }
}

/** Error: the body that a client has sent is larger than allowed. */
export class BodyTooLarge extends Error {}

/** Error: the body that a client has sent is not as long as it said. */
class BodyLengthDiffers extends Error {}

/** Passes bytes on and counts them; fails beyond `maxBytes`, or at another end than `length`. */
export const counting = (
  onBytes: (bytes: number) => void,
  { length, maxBytes = Infinity }: { readonly length?: number; readonly maxBytes?: number } = {}
): Transform => {
  let passed = 0
  const bytesMax = Math.min(maxBytes, length ?? Infinity)
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      passed += chunk.length
      onBytes(chunk.length)
      if (passed <= bytesMax) done(null, chunk)
      else done(passed > maxBytes ? new BodyTooLarge() : new BodyLengthDiffers())
    },
    flush(done) {
      done(length === undefined || passed === length ? null : new BodyLengthDiffers())
    }
  })
  // Its user may attach a listener later than the first error.
  counter.on("error", () => undefined)
  return counter
}

export interface OutgoingOptions {
  /** Connection of the request: an agent with its address, or a connection of its own. */
  readonly to: RequestOptions
  readonly method: string | undefined
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  readonly framing: Framing
}

export class OutgoingRequest {
  readonly sent: ClientRequest
  /** Settles once: with the response, or the first error. */
  readonly response: Promise<OutgoingResponse>
  readonly #framing: Framing
  #hasResponse = false
  /** Beginning of the body, for a repeat; undefined if there is more of it than is kept. */
  #kept: Array<Buffer> | undefined = []
  #keptBytes = 0
  #isWhole = false

  constructor({ framing, headers, method, path, to }: OutgoingOptions) {
    const { promise, reject, resolve } = Promise.withResolvers<OutgoingResponse>()
    this.response = promise
    this.#framing = framing
    this.sent = request({
      ...to,
      method,
      path,
      headers: { ...headers, ...framingHeaders(framing) }
    })
    this.sent.on("error", reject)
    this.sent.on("response", (message) => {
      message.on("error", () => undefined)
      this.#hasResponse = true
      resolve({ message })
    })
    this.sent.on("upgrade", (message, upstream, head) => {
      upstream.on("error", () => undefined)
      resolve({ message, upgraded: { upstream, head } })
    })
    this.sent.on("close", () => {
      // An error costs its stack: only where nobody has a response.
      if (!this.#hasResponse) reject(new Error("The connection has ended."))
    })
    // Nobody may wait for the response yet.
    promise.catch(() => undefined)
  }

  /**
   * Body of a request that failed on a connection of an earlier one, so that it can be sent again;
   * undefined if it cannot.
   */
  get whole(): Buffer | undefined {
    const isKept = this.sent.reusedSocket && this.#isWhole && this.#kept !== undefined
    return isKept ? Buffer.concat(this.#kept ?? []) : undefined
  }

  #keep(chunk: Buffer): void {
    this.#keptBytes += chunk.length
    if (this.#keptBytes > functionRuntime.repeatedMaxBytes) this.#kept = undefined
    else this.#kept?.push(chunk)
  }

  /** Ends the request; `error` says why, to whom waits for the response. */
  end(error?: Error): void {
    this.sent.destroy(error)
  }

  /**
   * Sends the body of a client; rejects if it is too large or shorter than it said. If the response comes
   * early and the request ends, reads and drops the rest, since the client still sends it.
   */
  upload(
    incoming: IncomingMessage,
    onBytes: (bytes: number) => void,
    maxBytes?: number
  ): Promise<never> {
    if (this.#framing === "" || this.#framing === "0") {
      this.#isWhole = true
      this.sent.end()
      return new Promise(() => undefined)
    }
    const length = this.#framing === "chunked" ? {} : { length: Number(this.#framing) }
    const count = counting(onBytes, { ...length, ...(maxBytes === undefined ? {} : { maxBytes }) })
    const failed = new Promise<never>((_resolve, reject) => {
      const drop = (): void => {
        incoming.unpipe(count)
        incoming.resume()
      }
      count.on("error", (error) => {
        drop()
        reject(error)
      })
      // A body that ends early must not look whole.
      incoming.once("close", () => {
        if (!incoming.complete) this.end()
      })
      this.sent.once("close", drop)
      count.on("data", (chunk: Buffer) => this.#keep(chunk))
      count.once("end", () => {
        this.#isWhole = true
      })
      incoming.pipe(count).pipe(this.sent)
    })
    failed.catch(() => undefined)
    return failed
  }
}
