/**
 * Serves calls that other runners forward: requests and sockets of their clients, and operations. A
 * runner that does not have the environment reports this before it reads a body.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { functionRuntime, functionLeases } from "#rpc/functions/runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { closeWithLinger } from "#server/platform/cut-connection"
import { isHostStopped, passRequest } from "../host/exchange.ts"
import type { FunctionHost } from "../host/host.ts"
import { passSocket } from "../host/socket.ts"
import { digestOf } from "../host/process-seal.ts"
import type { CallSeal, RunnerCall } from "./call-seal.ts"
import { movedResponse, paths, receiverResponse, refusedResponse } from "./proxy-protocol.ts"

export interface ReceiveOptions {
  readonly seal: CallSeal
  readonly here: (environmentId: EnvironmentId) => FunctionHost | undefined
  /** Runs an operation; undefined if the environment has left this runner meanwhile. */
  readonly operate: (environmentId: EnvironmentId, text: string) => Promise<string | undefined>
  readonly onFault: (fault: unknown) => void
}

/** Size limit of headers. A client sends up to 16 KiB, and the other runner adds less than that. */
const headersMaxBytes = 64 * 1024

/** Response to a call that this runner does not take. */
type Refusal = ReturnType<typeof receiverResponse>

/** Error: a call on an authenticated connection is not of the cluster, or was sent before. */
class NotSealed extends Error {}

/** Returns a call from another runner, or the response to one that this runner does not take. */
const readCall = (
  { onFault, seal }: ReceiveOptions,
  request: IncomingMessage
): RunnerCall | Refusal => {
  const opened = seal.open(request)
  if (opened.kind === "taken") return opened.call
  if (opened.kind === "elsewhere") return receiverResponse(seal.receiver)
  onFault(new NotSealed("A runner has sent a call without a valid seal."))
  return refusedResponse
}

const isRefusal = (call: RunnerCall | Refusal): call is Refusal => Array.isArray(call)

const send = (response: ServerResponse, [status, headers]: Refusal): void => {
  response.writeHead(status, headers).end()
}

const readText = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue
    bytes += chunk.length
    if (bytes > functionRuntime.operationMaxBytes) throw new Error("The operation is too large.")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

const makeServe = (options: ReceiveOptions) => {
  const { here, onFault, operate } = options
  const request = async (
    { environmentId, forwarded }: RunnerCall,
    incoming: IncomingMessage,
    response: ServerResponse
  ): Promise<void> => {
    const host = forwarded === undefined ? undefined : here(environmentId)
    if (forwarded === undefined || host === undefined) return send(response, movedResponse)
    const fault = await passRequest(host, {
      request: incoming,
      response,
      ...forwarded,
      playerId: forwarded.playerId,
      onBegin: () => response.writeContinue()
    })
    if (isHostStopped(fault)) send(response, movedResponse)
    else if (fault !== undefined) onFault(fault)
  }
  const operation = async (
    { digest, environmentId }: RunnerCall,
    incoming: IncomingMessage,
    response: ServerResponse
  ): Promise<void> => {
    if (here(environmentId) === undefined) return send(response, movedResponse)
    response.writeContinue()
    const text = await readText(incoming)
    if (digestOf(text) !== digest)
      throw new NotSealed("An operation has another body than its seal.")
    const reply = await operate(environmentId, text)
    if (reply === undefined) return send(response, movedResponse)
    response.writeHead(200, { "content-length": Buffer.byteLength(reply) }).end(reply)
  }
  return (incoming: IncomingMessage, response: ServerResponse): void => {
    response.on("error", onFault)
    const call = readCall(options, incoming)
    if (isRefusal(call)) return send(response, call)
    const serve = incoming.url === paths.operation ? operation : request
    serve(call, incoming, response).catch((fault: unknown) => {
      response.destroy()
      onFault(fault)
    })
  }
}

const makeUpgrade =
  (options: ReceiveOptions) =>
  async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const { here, onFault } = options
    const respond = ([status, headers]: Refusal): void => {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
      closeWithLinger(socket)
      socket.end([`HTTP/1.1 ${status} Moved`, ...lines, "connection: close", "", ""].join("\r\n"))
    }
    const call = readCall(options, request)
    if (isRefusal(call)) return respond(call)
    const { environmentId, forwarded } = call
    const host = forwarded === undefined ? undefined : here(environmentId)
    if (forwarded === undefined || host === undefined) return respond(movedResponse)
    const metadata = { ...forwarded, playerId: forwarded.playerId }
    const fault = await passSocket(host, { request, socket, head, ...metadata })
    if (isHostStopped(fault)) respond(movedResponse)
    else if (fault !== undefined) onFault(fault)
  }

/** Returns a handler of authenticated connections from other runners. */
export const receiveFrom = (options: ReceiveOptions): ((socket: Duplex) => void) => {
  const serve = makeServe(options)
  const upgrade = makeUpgrade(options)
  const server = createServer({
    // The runner of the client bounds how long a body takes.
    requestTimeout: 0,
    keepAliveTimeout: functionLeases.idleConnectionMillis * 2,
    maxHeaderSize: headersMaxBytes,
    requireHostHeader: false
  })
  // It listens to no port: connections come from the runner port.
  server.on("error", options.onFault)
  server.on("request", serve)
  server.on("checkContinue", serve)
  server.on("upgrade", (request, socket, head) => {
    socket.on("error", () => undefined)
    upgrade(request, socket, head).catch((fault: unknown) => {
      socket.destroy()
      options.onFault(fault)
    })
  })
  return (socket) => void server.emit("connection", socket)
}
