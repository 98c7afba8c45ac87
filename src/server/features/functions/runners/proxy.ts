/** Forwards client requests to the runner that has the environment, and returns the responses. */
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { pipeline } from "node:stream/promises"
import { Unavailable } from "#rpc/errors/codes"
import { functionRuntime as limits } from "#rpc/function-runtime-limits"
import { uploadMillis } from "../host/call-deadline.ts"
import { hasBody } from "#server/platform/body-deadlines"
import { bodySent, type Exchange, sendError } from "../host/exchange.ts"
import { forwardedHeaders, returnedHeaders } from "../host/headers.ts"
import { handshakeAnswer, type Handshake, join, passRefusal } from "../host/socket.ts"
import { type Forwarded, forwardedHeader, isMoved, paths } from "./proxy-protocol.ts"
import { Moved, OutgoingCall, type Way } from "./outgoing-call.ts"

/** Outcome of a proxied request: the client got a response, or the runner did not take it. */
export type Proxied = "answered" | "moved"

/** Sends the body. Drops the rest of the body once the answer has arrived. */
const upload = (incoming: IncomingMessage, sent: ClientRequest, onProgress: () => void): void => {
  sent.once("close", () => {
    incoming.unpipe(sent)
    incoming.resume()
  })
  if (!hasBody(incoming)) return void sent.end()
  incoming.pipe(sent)
  incoming.on("data", onProgress)
}

const copy = async (
  call: OutgoingCall,
  answer: IncomingMessage,
  response: ServerResponse
): Promise<void> => {
  response.writeHead(answer.statusCode ?? 500, returnedHeaders(answer.headers))
  response.flushHeaders()
  await pipeline(answer, response, { end: false })
  call.end()
  await bodySent(response)
  response.end()
}

/** Answers a request with the function on another runner. */
export const proxyRequest = async (
  way: Way,
  { onBegin, request: incoming, response }: Pick<Exchange, "onBegin" | "request" | "response">,
  forwarded: Forwarded
): Promise<Proxied> => {
  const isChunked = hasBody(incoming) && incoming.headers["content-length"] === undefined
  const call = new OutgoingCall(way, {
    method: incoming.method,
    path: paths.request,
    uploadMillis: uploadMillis(incoming),
    headers: {
      ...forwardedHeaders(incoming.headers),
      ...forwardedHeader(forwarded),
      ...(isChunked ? { "transfer-encoding": "chunked" } : {})
    },
    onBegin: (sent) => {
      onBegin?.()
      upload(incoming, sent, () => call.progressed())
    }
  })
  response.once("close", call.end)
  try {
    await copy(call, await call.answer(), response)
  } catch (error) {
    if (response.destroyed || response.writableFinished) return "answered"
    if (error instanceof Moved) return "moved"
    sendError(response, new Unavailable())
  } finally {
    response.off("close", call.end)
    call.end()
  }
  return "answered"
}

const opened = (
  sent: ClientRequest
): Promise<{ answer: IncomingMessage; upstream?: Duplex; head?: Buffer }> =>
  new Promise((resolve, reject) => {
    sent.once("response", (answer) => resolve({ answer }))
    sent.once("upgrade", (answer, upstream, head) => resolve({ answer, upstream, head }))
    sent.on("error", reject)
    sent.once("close", () => reject(new Error("The connection has ended.")))
    sent.end()
  })

/** Opens a WebSocket of a function on another runner. */
export const proxySocket = async (
  { address, connections, watchers }: Way,
  { head, request: incoming, socket }: Pick<Handshake, "head" | "request" | "socket">,
  forwarded: Forwarded
): Promise<Proxied> => {
  let sent: ClientRequest | undefined
  const end = (): void => void sent?.destroy()
  const deadline = setTimeout(end, limits.passedAnswerMillis)
  const settle = (): void => {
    clearTimeout(deadline)
    watchers.delete(end)
  }
  watchers.add(end)
  socket.once("close", end)
  try {
    sent = request({
      ...(await connections.open(address)),
      method: "GET",
      path: paths.request,
      headers: {
        ...forwardedHeaders(incoming.headers),
        ...forwardedHeader(forwarded),
        connection: "upgrade",
        upgrade: "websocket"
      }
    })
    const { answer, head: first, upstream } = await opened(sent)
    settle()
    if (upstream === undefined) {
      if (isMoved(answer)) return "moved"
      await passRefusal(socket, answer)
      return "answered"
    }
    socket.write(handshakeAnswer(answer))
    if (first !== undefined && first.length > 0) socket.write(first)
    if (head.length > 0) upstream.write(head)
    await join(socket, upstream)
  } catch {
    if (!socket.destroyed) return "moved"
  } finally {
    settle()
    socket.off("close", end)
    sent?.destroy()
  }
  return "answered"
}
