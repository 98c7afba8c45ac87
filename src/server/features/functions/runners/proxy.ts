/** Forwards client requests to the runner that has the environment, and returns the responses. */
import type { IncomingMessage } from "node:http"
import { pipeline } from "node:stream/promises"
import { Unavailable } from "#rpc/errors/codes"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { uploadMillis } from "../host/call-deadline.ts"
import { bodySent, type Exchange, isOver, sendError } from "../host/exchange.ts"
import { framingOf, refusalOf } from "../host/framing.ts"
import { forwardedHeaders, returnedHeaders, withPageAccess } from "../host/headers.ts"
import { OutgoingRequest } from "../host/outgoing-request.ts"
import {
  connectSocket,
  type Handshake,
  handshakeRefusal,
  hasGone,
  refuseSocket
} from "../host/socket.ts"
import type { RunnerCall, SealedCall } from "./call-seal.ts"
import {
  meeting,
  NotAccepted,
  OutgoingCall,
  requireAccepted,
  SealRefused,
  type RunnerTarget
} from "./outgoing-call.ts"
import { paths } from "./proxy-protocol.ts"

/** What this runner does with the request of its client. The other one learns the rest from the call. */
type ProxiedExchange = Pick<Exchange, "access" | "onBegin" | "request" | "response">

/** Outcome of a proxied request: the client got a response, or the runner did not take it. */
export type Proxied = "responded" | "moved"

const sealedCall = (request: IncomingMessage, call: RunnerCall): SealedCall => ({
  ...call,
  method: request.method ?? "GET",
  path: paths.request,
  framing: framingOf(request)
})

const copy = async (
  call: OutgoingCall,
  message: IncomingMessage,
  { access, response }: Pick<Exchange, "access" | "response">
): Promise<void> => {
  const headers = withPageAccess(returnedHeaders(message.headers), access)
  response.writeHead(message.statusCode ?? 500, headers)
  response.flushHeaders()
  await pipeline(message, response, { end: false })
  call.end()
  await bodySent(response)
  response.end()
}

/** Sends a request and returns its response; fails with {@link NotAccepted} if the call has not begun. */
const send = async (
  target: RunnerTarget,
  exchange: ProxiedExchange,
  runnerCall: RunnerCall
): Promise<void> => {
  const { onBegin, request, response } = exchange
  if (isOver({ request, response })) return
  const call = new OutgoingCall(target, {
    call: sealedCall(request, runnerCall),
    uploadMillis: uploadMillis(request),
    headers: forwardedHeaders(request.headers),
    onBegin: (outgoing) => {
      onBegin?.()
      // The other runner limits the body. The call ends when its client goes.
      void outgoing.upload(request, () => call.progressed()).catch(call.end)
    }
  })
  response.once("close", call.end)
  try {
    await copy(call, await call.response(), exchange)
  } finally {
    response.off("close", call.end)
    call.end()
  }
}

/** Answers a request with the function on another runner. */
export const proxyRequest = async (
  target: RunnerTarget,
  exchange: ProxiedExchange,
  call: RunnerCall
): Promise<Proxied> => {
  const { request, response } = exchange
  const refusal = refusalOf(request)
  try {
    if (refusal === undefined) await meeting(() => send(target, exchange, call))
    else sendError(response, refusal)
  } catch (error) {
    if (isOver(exchange)) return "responded"
    if (error instanceof NotAccepted) return "moved"
    sendError(response, new Unavailable())
  }
  return "responded"
}

/** Opens a WebSocket; fails with {@link NotAccepted} if the other runner does not take it. */
const openSocket = async (
  target: RunnerTarget,
  handshake: Pick<Handshake, "head" | "request" | "socket">,
  runnerCall: RunnerCall
): Promise<void> => {
  const { address, connections, watchers } = target
  const { request, socket } = handshake
  const to = await connections.open(address)
  const call = { ...sealedCall(request, runnerCall), method: "GET" }
  const outgoing = new OutgoingRequest({
    to,
    method: call.method,
    path: call.path,
    framing: call.framing,
    headers: {
      ...forwardedHeaders(request.headers),
      ...connections.sealed(address, call),
      connection: "upgrade",
      upgrade: "websocket"
    }
  })
  const end = (): void => outgoing.end()
  const deadline = setTimeout(end, functionRuntime.passedResponseMillis)
  watchers.add(end)
  socket.once("close", end)
  try {
    // The client may have gone while the connection was opened.
    if (await hasGone(socket)) return void socket.destroy()
    outgoing.sent.end()
    const opened = await outgoing.response
    clearTimeout(deadline)
    watchers.delete(end)
    if (opened.upgraded === undefined) requireAccepted(target, opened.message)
    await connectSocket(handshake, opened, {})
  } finally {
    clearTimeout(deadline)
    watchers.delete(end)
    socket.off("close", end)
    end()
  }
}

/** Opens a WebSocket of a function on another runner. */
export const proxySocket = async (
  target: RunnerTarget,
  handshake: Pick<Handshake, "head" | "request" | "socket">,
  call: RunnerCall
): Promise<Proxied> => {
  const { request, socket } = handshake
  socket.on("error", () => undefined)
  const refusal = handshakeRefusal(request)
  try {
    if (refusal !== undefined) refuseSocket(socket, refusal)
    else if (!socket.destroyed) await meeting(() => openSocket(target, handshake, call))
  } catch (error) {
    if (socket.destroyed) return "responded"
    if (!(error instanceof SealRefused)) return "moved"
    refuseSocket(socket, new Unavailable())
  }
  return "responded"
}
