/** Passes a client's request to a function and its response back, without buffering either. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { pipeline } from "node:stream/promises"
import { PayloadTooLarge, Unavailable } from "#rpc/errors/codes"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { GateClosed } from "#server/platform/workerd/supervisor"
import { CallDeadline, uploadMillis } from "./call-deadline.ts"
import { CallEnded, CallRefused, NoResponse } from "./call-end.ts"
import { callError, errorResponse, parseJson, type Sendable, thrownError } from "./failures.ts"
import { framingOf, refusalOf } from "./framing.ts"
import {
  type CallMetadata,
  type PageAccess,
  requestHeaders,
  responseHeaders,
  withPageAccess
} from "./headers.ts"
import type { FunctionCall, FunctionHost } from "./host.ts"
import {
  type OutgoingResponse,
  BodyTooLarge,
  counting,
  type OutgoingOptions,
  OutgoingRequest
} from "./outgoing-request.ts"
import { isClosedByPeer, ProcessAgent } from "./process-agent.ts"

/** Client's request and its metadata for the function. */
export interface Exchange extends CallMetadata {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** What the response says to pages of other origins; undefined if the function says it. */
  readonly access?: PageAccess | undefined
  /** Called when the call begins. The caller must not repeat the call afterwards. */
  readonly onBegin?: () => void
}

/** Whether nobody waits for the response any more: its client has gone, or has its response. */
export const isOver = ({ request, response }: Pick<Exchange, "request" | "response">): boolean =>
  response.destroyed || response.writableEnded || request.socket.destroyed

/** Milliseconds that the client of a refused upload may keep sending, while it reads the refusal. */
const lingerMillis = 2000

/** Closes the connection of a request with an unwanted body, unless the body ends soon. */
const endUpload = ({ req }: ServerResponse): void => {
  if (req.complete) return
  const cut = setTimeout(() => req.socket.destroy(), lingerMillis)
  for (const event of ["end", "close"]) req.once(event, () => clearTimeout(cut))
}

/**
 * Waits until the client has sent its body, if the connection closes after the response. A client that
 * still sends would get a reset and lose the response.
 */
export const bodySent = async ({ req, shouldKeepAlive }: ServerResponse): Promise<void> => {
  if (req.complete || req.destroyed || shouldKeepAlive) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, lingerMillis)
  for (const event of ["end", "close"]) req.once(event, resolve)
  req.resume()
  await promise
  clearTimeout(timer)
}

/**
 * Sends an error, unless the client has its response. If the response has begun, cuts the connection, so
 * that the client sees an incomplete response.
 */
export const sendError = (response: ServerResponse, error: Sendable): void => {
  if (response.destroyed || response.writableEnded) return
  if (response.headersSent) return void response.destroy()
  endUpload(response)
  const { body, status } = errorResponse(error)
  // What follows on the connection of an ambiguous request may be a part of it.
  if (error._tag === "invalid_request") response.shouldKeepAlive = false
  response.writeHead(status, {
    "content-type": "application/json",
    "access-control-allow-origin": "*",
    "cache-control": "no-store",
    "content-length": Buffer.byteLength(body)
  })
  response.end(body)
}

/** Request in progress to a function. */
class ProxiedCall {
  readonly #host: FunctionHost
  readonly #exchange: Exchange
  readonly #call: FunctionCall
  readonly #options: OutgoingOptions
  readonly #deadline: CallDeadline
  #outgoing: OutgoingRequest
  #isRepeated = false

  constructor(host: FunctionHost, exchange: Exchange, call: FunctionCall) {
    this.#host = host
    this.#exchange = exchange
    this.#call = call
    const { agent, sockets } = call.process
    const { request } = exchange
    const framing = framingOf(request)
    const { method = "GET" } = request
    // A body that is still to come could not be sent again, so it takes a connection of its own.
    const isKept = request.complete || framing === "" || framing === "0"
    this.#options = {
      to: { agent: isKept ? agent : new ProcessAgent(), socketPath: sockets.main },
      method,
      path: "/",
      framing,
      headers: {
        ...requestHeaders(request.headers, exchange),
        ...host.fetchHeaders(call.process, { method, framing }, exchange)
      }
    }
    this.#outgoing = new OutgoingRequest(this.#options)
    const uploading = uploadMillis(request)
    this.#deadline = new CallDeadline(functionRuntime.responseMillis, uploading, () =>
      this.#end("late")
    )
    call.onProcessEnd(this.#end)
  }

  readonly #end = (reason: CallEnded["reason"]): void => {
    this.#outgoing.end(new CallEnded({ reason }))
  }

  async run(): Promise<void> {
    const { response } = this.#exchange
    const onGone = (): void => this.#outgoing.end()
    response.once("close", onGone)
    try {
      const { message, upgraded } = await this.#response()
      this.#deadline.end()
      if (upgraded !== undefined) throw new Error("The process opened a socket for a request.")
      await this.#respond(message)
    } finally {
      this.#deadline.end()
      response.off("close", onGone)
      this.#outgoing.end()
    }
  }

  /**
   * Sends the request. The process may close a kept connection just when it is used again, as after a
   * response whose stream has failed. Then the same request goes over another one. The process takes the
   * number in its seal once, so it cannot run twice: it refuses the repeat of a call that has run.
   */
  async #response(): Promise<OutgoingResponse> {
    const upload = this.#outgoing.upload(
      this.#exchange.request,
      this.#uploaded,
      functionRuntime.bodyMaxBytes
    )
    try {
      return await Promise.race([this.#outgoing.response, upload])
    } catch (error) {
      const again = isClosedByPeer(error) ? this.#outgoing.whole : undefined
      if (again === undefined || this.#call.endedBy !== undefined || isOver(this.#exchange))
        throw error
      this.#isRepeated = true
      const to = { ...this.#options.to, agent: new ProcessAgent() }
      this.#outgoing = new OutgoingRequest({ ...this.#options, to })
      this.#outgoing.sent.end(again)
      return await this.#outgoing.response
    }
  }

  readonly #uploaded = (bytes: number): void => {
    this.#host.count(0, bytes)
    this.#deadline.progressed()
  }

  async #respond(message: IncomingMessage): Promise<void> {
    const { access, mount, response } = this.#exchange
    const outcome = message.headers["x-svc-outcome"]
    if (outcome === "refused") {
      throw this.#isRepeated ? new CallEnded({ reason: "broken" }) : new CallRefused()
    }
    if (outcome === "failed") {
      const { program } = this.#call.process
      return sendError(response, thrownError(await readJson(message), program.isDevelopment))
    }
    if (isOver(this.#exchange)) return
    if (outcome === undefined) throw new NoResponse()
    const headers = withPageAccess(responseHeaders(message.headers, mount), access)
    response.writeHead(message.statusCode ?? 500, headers)
    response.flushHeaders()
    const count = counting((bytes) => {
      this.#host.count(0, bytes)
      this.#host.supervisor.progressed()
    })
    await pipeline(message, count, response, { end: false })
    this.#outgoing.end()
    await bodySent(response)
    response.end()
  }
}

const failureMaxBytes = 64 * 1024

const readJson = async (message: IncomingMessage): Promise<unknown> => {
  let text = ""
  for await (const chunk of message) {
    text += String(chunk)
    if (text.length > failureMaxBytes) return undefined
  }
  return parseJson(text)
}

/** Whether the host ended permanently before the call began, without reading or answering anything. */
export const isHostStopped = (error: unknown): boolean =>
  error instanceof GateClosed && error.reason === "stopped"

/**
 * Answers a request with a function. Returns a fault of the service, or the reason why the host {@link
 * isHostStopped}.
 */
export const passRequest = async (host: FunctionHost, exchange: Exchange): Promise<unknown> => {
  const { request: incoming, response } = exchange
  const refusal = refusalOf(incoming)
  if (refusal !== undefined) return sendError(response, refusal)
  if (Number(incoming.headers["content-length"] ?? 0) > functionRuntime.bodyMaxBytes) {
    return sendError(response, tooLarge())
  }
  if (host.supervisor.load >= functionRuntime.callsMax + functionRuntime.socketsMax) {
    return sendError(response, new Unavailable())
  }
  if (isOver(exchange)) return undefined
  host.count(1, 0)
  let call: FunctionCall
  try {
    call = await host.supervisor.enter("call")
  } catch (error) {
    return isHostStopped(error) ? error : fail(host, response, error)
  }
  // While the call waited, its client may have gone, or its player may have lost the right to it.
  if (isOver(exchange)) return call.end()
  try {
    exchange.onBegin?.()
    await new ProxiedCall(host, exchange, call).run()
    return undefined
  } catch (error) {
    if (error instanceof BodyTooLarge) return sendError(response, tooLarge())
    if (isOver(exchange)) return undefined
    // A response that has begun ends now, whatever its end was.
    if (response.headersSent) response.destroy()
    return fail(host, response, await host.failures.endOf(call, error))
  } finally {
    call.end()
  }
}

const tooLarge = () => new PayloadTooLarge({ details: { limit: functionRuntime.bodyMaxBytes } })

const fail = (host: FunctionHost, response: ServerResponse, error: unknown): unknown => {
  const known = callError(error)
  sendError(response, known ?? new Unavailable())
  return known === undefined ? host.failures.fault(error) : undefined
}
