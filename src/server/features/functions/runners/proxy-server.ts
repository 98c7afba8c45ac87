/**
 * Serves calls that other runners forward: requests and sockets of their clients, and operations. A
 * runner that does not have the environment reports this before it reads a body.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { functionRuntime as limits, functionLeases } from "#rpc/function-runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { hasLeft, passRequest } from "../host/exchange.ts"
import type { FunctionHost } from "../host/host.ts"
import { passSocket } from "../host/socket.ts"
import { movedAnswer, paths, readEnvironment, readForwarded } from "./proxy-protocol.ts"

export interface ReceiveOptions {
  readonly here: (environmentId: EnvironmentId) => FunctionHost | undefined
  /** Runs an operation; undefined if the environment has left this runner meanwhile. */
  readonly operate: (environmentId: EnvironmentId, text: string) => Promise<string | undefined>
  readonly onFault: (fault: unknown) => void
}

/** Size limit of headers. A client sends up to 16 KiB, and the other runner adds less than that. */
const headersMaxBytes = 64 * 1024

const sendMoved = (response: ServerResponse): void => {
  const [status, headers] = movedAnswer
  response.writeHead(status, headers).end()
}

const readText = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue
    bytes += chunk.length
    if (bytes > limits.operationMaxBytes) throw new Error("The operation is too large.")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

const makeServe = ({ here, onFault, operate }: ReceiveOptions) => {
  const request = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const forwarded = readForwarded(incoming.headers)
    const host = forwarded === undefined ? undefined : here(forwarded.environmentId)
    if (forwarded === undefined || host === undefined) return sendMoved(response)
    const fault = await passRequest(host, {
      request: incoming,
      response,
      ...forwarded,
      playerId: forwarded.playerId,
      onBegin: () => response.writeContinue()
    })
    if (hasLeft(fault)) sendMoved(response)
    else if (fault !== undefined) onFault(fault)
  }
  const operation = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const environmentId = readEnvironment(incoming.headers)
    if (environmentId === undefined || here(environmentId) === undefined) return sendMoved(response)
    response.writeContinue()
    const answer = await operate(environmentId, await readText(incoming))
    if (answer === undefined) return sendMoved(response)
    response.writeHead(200, { "content-length": Buffer.byteLength(answer) }).end(answer)
  }
  return (incoming: IncomingMessage, response: ServerResponse): void => {
    const serve = incoming.url === paths.operation ? operation : request
    serve(incoming, response).catch((fault: unknown) => {
      response.destroy()
      onFault(fault)
    })
  }
}

const makeUpgrade =
  ({ here, onFault }: ReceiveOptions) =>
  async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    socket.on("error", () => undefined)
    const sendMovedSocket = (): void => {
      const [status, headers] = movedAnswer
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
      socket.end([`HTTP/1.1 ${status} Moved`, ...lines, "connection: close", "", ""].join("\r\n"))
    }
    const forwarded = readForwarded(request.headers)
    const host = forwarded === undefined ? undefined : here(forwarded.environmentId)
    if (forwarded === undefined || host === undefined) return sendMovedSocket()
    const facts = { ...forwarded, playerId: forwarded.playerId }
    const fault = await passSocket(host, { request, socket, head, ...facts })
    if (hasLeft(fault)) sendMovedSocket()
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
  server.on("request", serve)
  server.on("checkContinue", serve)
  server.on("upgrade", (request, socket, head) => {
    upgrade(request, socket, head).catch((fault: unknown) => {
      socket.destroy()
      options.onFault(fault)
    })
  })
  return (socket) => void server.emit("connection", socket)
}
