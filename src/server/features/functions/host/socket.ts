/** Passes a client's WebSocket to a function: after the handshake, bytes in both directions. */
import { type IncomingMessage, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { InvalidRequest, Unavailable } from "#rpc/errors/codes"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { closeWithLinger } from "#server/platform/cut-connection"
import { callError, errorResponse, parseJson, type Sendable, thrownError } from "./failures.ts"
import { framingOf, refusalOf } from "./framing.ts"
import { type CallMetadata, requestHeaders } from "./headers.ts"
import { isHostStopped } from "./exchange.ts"
import { CallEnded, CallRefused, NoResponse } from "./call-end.ts"
import type { FunctionProgram } from "../program.ts"
import type { FunctionCall, FunctionHost } from "./host.ts"
import { type OutgoingResponse, OutgoingRequest } from "./outgoing-request.ts"

/** Client's handshake. */
export interface Handshake extends CallMetadata {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
}

/**
 * Whether a client has gone, also one that has just closed its half. Nobody reads its bytes before the
 * WebSocket is open, so the end shows only to one who looks for it.
 */
export const hasGone = async (socket: Duplex): Promise<boolean> => {
  socket.read(0)
  await new Promise((resolve) => setImmediate(resolve))
  return socket.destroyed || socket.readableEnded
}

/** Writes a whole response and closes the connection. Its client may have gone. */
const respondWhole = (socket: Duplex, text: string): void => {
  socket.on("error", () => undefined)
  closeWithLinger(socket)
  socket.end(text)
}

/** Refuses a handshake. */
export const refuseSocket = (socket: Duplex, error: Sendable): void => {
  const { body, status } = errorResponse(error)
  respondWhole(
    socket,
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
      `Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}

/** Returns why a handshake cannot be passed on: it is ambiguous, or has a body. */
export const handshakeRefusal = (request: IncomingMessage): Sendable | undefined => {
  const refusal = refusalOf(request)
  if (refusal !== undefined || Number(framingOf(request)) === 0) return refusal
  const issues = [{ path: "body", message: "A handshake has no body." }]
  return new InvalidRequest({ details: { issues } })
}

/** Headers of the handshake's response that the client needs. */
const handshakeHeaderForm = /^(?:sec-websocket-|upgrade$|connection$)/

const handshakeResponse = ({ headers }: IncomingMessage): string => {
  const lines = Object.entries(headers)
    .filter(([name]) => handshakeHeaderForm.test(name))
    .map(([name, value]) => `${name}: ${String(value)}`)
  return ["HTTP/1.1 101 Switching Protocols", ...lines, "", ""].join("\r\n")
}

/**
 * Forwards bytes until either end closes. An end that may have gone before is closed at once: it emits
 * nothing any more. A WebSocket that is half closed has ended, too.
 */
const join = (client: Duplex, upstream: Duplex): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      client.destroy()
      upstream.destroy()
      resolve()
    }
    for (const [side, other] of [
      [client, upstream],
      [upstream, client]
    ] as const) {
      side.on("error", end).on("close", end)
      side.once("end", () => closeWithLinger(other))
      side.pipe(other)
    }
    if (client.destroyed || upstream.destroyed) end()
  })

interface ConnectOptions {
  /** Program whose process answers; undefined for the response of another runner. */
  readonly program?: Pick<FunctionProgram, "isDevelopment">
  readonly opened?: (to: Duplex) => void
}

/**
 * Passes the response to a handshake to the client, and then bytes in both directions until either end
 * closes. `opened` runs when the WebSocket is open.
 */
export const connectSocket = async (
  { head, socket }: Pick<Handshake, "head" | "socket">,
  { message, upgraded }: OutgoingResponse,
  { opened, program }: ConnectOptions
): Promise<void> => {
  if (upgraded === undefined) return passRefusal(socket, message, program)
  const { head: first, upstream } = upgraded
  opened?.(upstream)
  if (!socket.destroyed) {
    socket.write(handshakeResponse(message))
    if (first.length > 0) socket.write(first)
    if (head.length > 0) upstream.write(head)
  }
  await join(socket, upstream)
}

/** Sends the handshake to the process; rejects if the process, the client or the time ends before. */
const open = async (
  host: FunctionHost,
  call: FunctionCall,
  { request, socket, ...metadata }: Handshake
): Promise<OutgoingResponse> => {
  const { sockets } = call.process
  const framing = framingOf(request)
  const outgoing = new OutgoingRequest({
    // Not of the agent: the connection never comes back.
    to: { agent: false, socketPath: sockets.main },
    method: "GET",
    path: "/",
    framing,
    headers: {
      ...requestHeaders(request.headers, metadata),
      ...host.fetchHeaders(call.process, { method: "GET", framing }, metadata),
      connection: "upgrade",
      upgrade: "websocket"
    }
  })
  const end = (reason: CallEnded["reason"]): void => outgoing.end(new CallEnded({ reason }))
  const onGone = (): void => outgoing.end()
  const deadline = setTimeout(() => end("late"), functionRuntime.responseMillis)
  call.onProcessEnd(end)
  socket.once("close", onGone)
  try {
    outgoing.sent.end()
    return await outgoing.response
  } finally {
    clearTimeout(deadline)
    socket.off("close", onGone)
  }
}

/** Reads the beginning of a text, for as long as its reader is there. */
const text = async (message: IncomingMessage, reader: Duplex): Promise<string> => {
  let read = ""
  const end = (): void => void message.destroy()
  const deadline = setTimeout(end, functionRuntime.responseMillis)
  reader.once("close", end)
  try {
    for await (const chunk of message) {
      read += String(chunk)
      // The rest may have no end.
      if (read.length >= functionRuntime.logLineBytes) break
    }
    return read
  } finally {
    clearTimeout(deadline)
    reader.off("close", end)
  }
}

/** Passes a function's refusal of a handshake to the client: its status, media type and text. */
const passRefusal = async (
  socket: Duplex,
  message: IncomingMessage,
  program: ConnectOptions["program"]
): Promise<void> => {
  const outcome = message.headers["x-svc-outcome"]
  if (outcome === "refused") throw new CallRefused()
  if (outcome === undefined && program !== undefined) throw new NoResponse()
  const body = await text(message, socket)
  if (outcome === "failed") {
    return refuseSocket(socket, thrownError(parseJson(body), program?.isDevelopment === true))
  }
  const status = message.statusCode ?? 500
  respondWhole(
    socket,
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      `Content-Type: ${message.headers["content-type"] ?? "text/plain"}\r\n` +
      "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: sandbox\r\n" +
      `Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}

/**
 * Opens a WebSocket of a function. Returns a fault of the service, or the reason why the host has left.
 */
export const passSocket = async (host: FunctionHost, handshake: Handshake): Promise<unknown> => {
  const { request, socket } = handshake
  // The client may go at any time.
  socket.on("error", () => undefined)
  const refusal = handshakeRefusal(request)
  if (refusal !== undefined) return refuseSocket(socket, refusal)
  if (socket.destroyed) return undefined
  host.count(1, 0)
  let call: FunctionCall | undefined
  try {
    if (host.supervisor.load >= functionRuntime.socketsMax)
      throw new CallEnded({ reason: "stopped" })
    call = await host.supervisor.enter("socket")
    if (await hasGone(socket)) return void socket.destroy()
    const { program } = call.process
    const opened = await open(host, call, handshake)
    await connectSocket(handshake, opened, {
      program,
      opened: (upstream) => count(host, call, socket, upstream)
    })
    return undefined
  } catch (error) {
    if (socket.destroyed) return undefined
    if (isHostStopped(error)) return error
    const end = call === undefined ? error : await host.failures.endOf(call, error)
    const known = callError(end)
    refuseSocket(socket, known ?? new Unavailable())
    return known === undefined ? host.failures.fault(end) : undefined
  } finally {
    call?.end()
  }
}

/** Counts the bytes of a WebSocket, and ends it with its process. */
const count = (
  host: FunctionHost,
  call: FunctionCall | undefined,
  socket: Duplex,
  upstream: Duplex
): void => {
  call?.onProcessEnd(() => upstream.destroy())
  socket.on("data", (chunk: Buffer) => host.count(0, chunk.length))
  upstream.on("data", (chunk: Buffer) => {
    host.count(0, chunk.length)
    host.supervisor.progressed()
  })
}
