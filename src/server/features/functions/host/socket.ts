/** Passes a client's WebSocket to a function: after the handshake, bytes in both directions. */
import { type IncomingMessage, request, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { Unavailable } from "#rpc/errors/codes"
import { functionRuntime as limits } from "#rpc/function-runtime-limits"
import { callError, errorAnswer, parseJson, type Sendable, thrownError } from "./failures.ts"
import { type CallFacts, requestHeaders } from "./headers.ts"
import { hasLeft } from "./exchange.ts"
import { CallEnded, type FunctionCall, type FunctionHost } from "./host.ts"

/** Client's handshake. */
export interface Handshake extends Omit<CallFacts, "callHeaders"> {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
}

/** Refuses a handshake. */
export const refuseSocket = (socket: Duplex, error: Sendable): void => {
  const { body, status } = errorAnswer(error)
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
      `Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}

/** Headers of the handshake's answer that the client needs. */
const answerForm = /^(?:sec-websocket-|upgrade$|connection$)/

export const handshakeAnswer = ({ headers }: IncomingMessage): string => {
  const lines = Object.entries(headers)
    .filter(([name]) => answerForm.test(name))
    .map(([name, value]) => `${name}: ${String(value)}`)
  return ["HTTP/1.1 101 Switching Protocols", ...lines, "", ""].join("\r\n")
}

/** Forwards bytes until either end closes. */
export const join = (client: Duplex, upstream: Duplex): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      client.destroy()
      upstream.destroy()
      resolve()
    }
    for (const side of [client, upstream]) side.on("error", end).on("close", end)
    client.pipe(upstream)
    upstream.pipe(client)
  })

const open = (
  host: FunctionHost,
  call: FunctionCall,
  { request: incoming, ...facts }: Handshake
): Promise<{ answer: IncomingMessage; upstream?: Duplex; head?: Buffer }> =>
  new Promise((resolve, reject) => {
    const { sockets } = call.process
    const sent = request({
      // Not of the agent: the connection never comes back.
      agent: false,
      socketPath: sockets.main,
      method: "GET",
      path: "/",
      headers: {
        ...requestHeaders(incoming.headers, { ...facts, callHeaders: host.callHeaders("fetch") }),
        connection: "upgrade",
        upgrade: "websocket"
      },
      timeout: limits.answerMillis
    })
    const end = (reason: CallEnded["reason"]): void => {
      sent.destroy(new CallEnded({ reason }))
    }
    call.onProcessEnd(end)
    sent.on("timeout", () => end("late"))
    facts.socket.once("close", () => sent.destroy())
    sent.on("error", reject)
    sent.on("response", (answer) => resolve({ answer }))
    sent.on("upgrade", (answer, upstream, head) => resolve({ answer, upstream, head }))
    sent.end()
  })

const text = async (answer: IncomingMessage): Promise<string> => {
  let read = ""
  for await (const chunk of answer) {
    read += String(chunk)
    // The rest may have no end.
    if (read.length >= limits.logLineBytes) break
  }
  return read
}

/** Passes a function's refusal of a handshake to the client: its status, media type and text. */
export const passRefusal = async (
  socket: Duplex,
  answer: IncomingMessage,
  isDevelopment = false
): Promise<void> => {
  const body = await text(answer)
  if (answer.headers["x-svc-outcome"] === "failed") {
    return refuseSocket(socket, thrownError(parseJson(body), isDevelopment))
  }
  const status = answer.statusCode ?? 500
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      `Content-Type: ${answer.headers["content-type"] ?? "text/plain"}\r\n` +
      "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: sandbox\r\n" +
      `Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}

/**
 * Opens a WebSocket of a function. Returns a fault of the service, or the reason why the host has left.
 */
export const passSocket = async (host: FunctionHost, handshake: Handshake): Promise<unknown> => {
  const { head, socket } = handshake
  // The client may go at any time.
  socket.on("error", () => undefined)
  host.count(1, 0)
  let call: FunctionCall | undefined
  try {
    if (host.supervisor.load >= limits.socketsMax) throw new CallEnded({ reason: "stopped" })
    call = await host.supervisor.enter("socket")
    const opened = await open(host, call, handshake)
    const { answer, upstream } = opened
    if (upstream === undefined) {
      await passRefusal(socket, answer, call.process.program.isDevelopment)
      return undefined
    }
    call.onProcessEnd(() => upstream.destroy())
    socket.write(handshakeAnswer(answer))
    if (opened.head !== undefined && opened.head.length > 0) socket.write(opened.head)
    if (head.length > 0) upstream.write(head)
    const { supervisor } = host
    socket.on("data", (chunk: Buffer) => host.count(0, chunk.length))
    upstream.on("data", (chunk: Buffer) => {
      host.count(0, chunk.length)
      supervisor.progressed()
    })
    await join(socket, upstream)
    return undefined
  } catch (error) {
    if (socket.destroyed) return undefined
    if (hasLeft(error)) return error
    const known = callError(error)
    refuseSocket(socket, known ?? new Unavailable())
    return known === undefined ? error : undefined
  } finally {
    call?.end()
  }
}
