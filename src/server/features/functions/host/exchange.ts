/** Passes a client's request to a function and its response back, without buffering either. */
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from "node:http"
import { Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { PayloadTooLarge, Unavailable } from "#rpc/errors/codes"
import { functionRuntime as limits } from "#rpc/function-runtime-limits"
import { hasBody } from "#server/platform/body-deadlines"
import { GateClosed } from "#server/platform/workerd/supervisor"
import { CallDeadline, uploadMillis } from "./call-deadline.ts"
import { callError, errorAnswer, parseJson, type Sendable, thrownError } from "./failures.ts"
import { type CallFacts, requestHeaders, responseHeaders } from "./headers.ts"
import { CallEnded, type FunctionCall, type FunctionHost } from "./host.ts"

/** Client's request and its facts for the function. */
export interface Exchange extends Omit<CallFacts, "callHeaders"> {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Called when the call begins. The caller must not repeat the call afterwards. */
  readonly onBegin?: () => void
}

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
  if (req.complete || shouldKeepAlive) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, lingerMillis)
  for (const event of ["end", "close"]) req.once(event, resolve)
  req.resume()
  await promise
  clearTimeout(timer)
}

/**
 * Sends an error. If the response has begun, cuts the connection, so that the client sees an incomplete
 * response.
 */
export const sendError = (response: ServerResponse, error: Sendable): void => {
  if (response.headersSent) return void response.destroy()
  endUpload(response)
  const { body, status } = errorAnswer(error)
  response.writeHead(status, {
    "content-type": "application/json",
    "access-control-allow-origin": "*",
    "cache-control": "no-store",
    "content-length": Buffer.byteLength(body)
  })
  response.end(body)
}

/** Error: the client's body exceeds the size limit of functions. */
class BodyTooLarge extends Error {}

const counting = (maxBytes: number, onBytes: (bytes: number) => void): Transform => {
  let passed = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      passed += chunk.length
      onBytes(chunk.length)
      if (passed > maxBytes) done(new BodyTooLarge())
      else done(null, chunk)
    }
  })
}

/** Request in progress to a function. */
class Passage {
  readonly #host: FunctionHost
  readonly #exchange: Exchange
  readonly #call: FunctionCall
  readonly #sent: ClientRequest
  readonly #deadline: CallDeadline
  #reason: CallEnded["reason"] | undefined

  constructor(host: FunctionHost, exchange: Exchange, call: FunctionCall) {
    this.#host = host
    this.#exchange = exchange
    this.#call = call
    const { agent, sockets } = call.process
    this.#sent = request({
      agent,
      socketPath: sockets.main,
      method: exchange.request.method,
      path: "/",
      headers: requestHeaders(exchange.request.headers, {
        ...exchange,
        callHeaders: host.callHeaders("fetch")
      })
    })
    const uploading = uploadMillis(exchange.request)
    this.#deadline = new CallDeadline(limits.answerMillis, uploading, () => this.#end("late"))
    call.onProcessEnd(this.#end)
  }

  readonly #end = (reason: CallEnded["reason"]): void => {
    this.#reason ??= reason
    this.#sent.destroy(new CallEnded({ reason }))
  }

  async run(): Promise<void> {
    const { request: incoming, response } = this.#exchange
    // While the call waited, its client may have gone, or its player may have lost the right to it.
    if (response.destroyed || response.writableEnded) return this.#end("late")
    const onGone = (): void => void this.#sent.destroy()
    response.once("close", onGone)
    try {
      const answered = this.#answered()
      if (!hasBody(incoming)) this.#sent.end()
      const answer = await (hasBody(incoming) ? Promise.race([answered, this.#upload()]) : answered)
      this.#deadline.end()
      await this.#answer(answer)
    } finally {
      this.#deadline.end()
      response.off("close", onGone)
      this.#sent.destroy()
    }
  }

  /**
   * Returns why the call ended if the process did. Connections break before the end of the process is
   * known.
   */
  async endOf(error: unknown): Promise<unknown> {
    const moment = new Promise((resolve) => setTimeout(resolve, momentMillis))
    if (this.#reason === undefined) await Promise.race([this.#call.process.exited, moment])
    return this.#reason === undefined ? error : new CallEnded({ reason: this.#reason })
  }

  #answered(): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      this.#sent.once("response", resolve)
      this.#sent.on("error", reject)
    })
  }

  /**
   * Sends the body; rejects if it is too large. If a function answers early, reads and drops the rest,
   * since the client still sends it.
   */
  #upload(): Promise<never> {
    const { request: incoming } = this.#exchange
    return new Promise((_resolve, reject) => {
      const count = counting(limits.bodyMaxBytes, (bytes) => {
        this.#host.count(0, bytes)
        this.#deadline.progressed()
      })
      const drop = (): void => {
        incoming.unpipe(count)
        incoming.resume()
      }
      count.once("error", (error) => {
        drop()
        reject(error)
      })
      this.#sent.once("close", drop)
      incoming.pipe(count).pipe(this.#sent)
    })
  }

  async #answer(answer: IncomingMessage): Promise<void> {
    const { mount, response } = this.#exchange
    if (answer.headers["x-svc-outcome"] === "failed") {
      const { program } = this.#call.process
      return sendError(response, thrownError(await readJson(answer), program.isDevelopment))
    }
    response.writeHead(answer.statusCode ?? 500, responseHeaders(answer.headers, mount))
    response.flushHeaders()
    const count = counting(Infinity, (bytes) => {
      this.#host.count(0, bytes)
      this.#host.supervisor.progressed()
    })
    await pipeline(answer, count, response, { end: false })
    this.#sent.destroy()
    await bodySent(response)
    response.end()
  }
}

const momentMillis = 100

const failureMaxBytes = 64 * 1024

const readJson = async (answer: IncomingMessage): Promise<unknown> => {
  let text = ""
  for await (const chunk of answer) {
    text += String(chunk)
    if (text.length > failureMaxBytes) return undefined
  }
  return parseJson(text)
}

/** Whether the host ended permanently before the call began, without reading or answering anything. */
export const hasLeft = (error: unknown): boolean =>
  error instanceof GateClosed && error.reason === "stopped"

/**
 * Answers a request with a function. Returns a fault of the service, or the reason why the host {@link
 * hasLeft}.
 */
export const passRequest = async (host: FunctionHost, exchange: Exchange): Promise<unknown> => {
  const { request: incoming, response } = exchange
  if (Number(incoming.headers["content-length"] ?? 0) > limits.bodyMaxBytes) {
    return sendError(response, tooLarge())
  }
  if (host.supervisor.load >= limits.callsMax + limits.socketsMax) {
    return sendError(response, new Unavailable())
  }
  host.count(1, 0)
  let call: FunctionCall
  try {
    call = await host.supervisor.enter("call")
  } catch (error) {
    return hasLeft(error) ? error : fail(response, error)
  }
  exchange.onBegin?.()
  const passage = new Passage(host, exchange, call)
  try {
    await passage.run()
    return undefined
  } catch (error) {
    if (error instanceof BodyTooLarge) return sendError(response, tooLarge())
    // The client has gone.
    if (response.destroyed || response.writableFinished) return undefined
    return fail(response, await passage.endOf(error))
  } finally {
    call.end()
  }
}

const tooLarge = () => new PayloadTooLarge({ details: { limit: limits.bodyMaxBytes } })

const fail = (response: ServerResponse, error: unknown): unknown => {
  const known = callError(error)
  sendError(response, known ?? new Unavailable())
  return known === undefined ? error : undefined
}
