/**
 * Node's HTTP server with its bounds: what a client may take its time with, and how much it may send
 * before anybody listens. Paths that are WebSockets take their upgrades from here, before the HTTP
 * router sees them.
 */
import { IncomingMessage, Server, type ServerOptions } from "node:http"
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import { NodeHttpServer } from "@effect/platform-node"
import { Context, Effect, Layer } from "effect"
import { UpgradeRequired } from "#rpc/errors"
import { socket } from "#rpc/limits"
import { Settings } from "../settings.ts"
import { paths } from "./methods.ts"

/** Takes an upgrade request: the socket is the handler's from then on. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Bounds of a connection, in milliseconds and bytes. */
const bounds = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5000,
  maxHeaderSize: 16 * 1024,
  noDelay: true
} as const satisfies ServerOptions

const maxHeadersCount = 100

/** Sockets, and room beside them for requests. */
const maxConnections = socket.connectionsPerNode + 10_000

/** How long requests under way may take to end when the process stops. */
const shutdownMillis = 5000

const pathOf = (request: IncomingMessage): string => (request.url ?? "").split("?", 1)[0] ?? ""

/** What Node refuses before there is a request: its code, the status and our words for it. */
const refusals: Readonly<Record<string, readonly [status: string, code: string, text: string]>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "payload_too_large",
    "The headers are too large."
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "invalid_request", "The request took too long."]
}

const refuse = (error: NodeJS.ErrnoException, socket: Duplex): void => {
  if (error.code === "ECONNRESET" || !socket.writable) return
  const refusal = refusals[error.code ?? ""]
  if (refusal !== undefined) return sayNo(socket, ...refusal)
  sayNo(socket, "400 Bad Request", "invalid_request", "This is not an HTTP request.")
}

const sayNo = (socket: Duplex, status: string, code: string, message: string): void => {
  const body = JSON.stringify({ error: { code, message } })
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nConnection: close\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}

/** Paths that are WebSockets. */
const doors: ReadonlySet<string> = new Set([paths.realtime, paths.rpc])

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const protocols = new RegExp(`^${token}(?:[ \\t]*,[ \\t]*${token})*$`)

/** Whether an upgrade is what RFC 6455 calls a handshake (section 4.2.1). */
const isHandshake = ({ headers, method }: IncomingMessage): boolean =>
  method === "GET" &&
  headers.upgrade?.toLowerCase() === "websocket" &&
  headers["sec-websocket-version"] === "13" &&
  /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "") &&
  protocols.test(headers["sec-websocket-protocol"] ?? "none")

/** An upgrade of a registered path never reaches the listeners of the HTTP router. */
class UpgradingServer extends Server {
  readonly upgrades = new Map<string, UpgradeHandler>()
  readonly openSockets = new Set<Socket>()

  constructor() {
    super(bounds)
    this.maxHeadersCount = maxHeadersCount
    this.maxConnections = maxConnections
    this.on("clientError", refuse)
    this.on("connection", (socket) => {
      this.openSockets.add(socket)
      socket.once("close", () => this.openSockets.delete(socket))
    })
  }

  override emit(event: string, ...args: ReadonlyArray<unknown>): boolean {
    if (event !== "upgrade") return super.emit(event, ...args)
    const [request, socket, head] = args
    if (request instanceof IncomingMessage && socket instanceof Duplex && Buffer.isBuffer(head)) {
      const path = pathOf(request)
      if (doors.has(path) && !isHandshake(request)) {
        const { message } = new UpgradeRequired()
        sayNo(socket, "426 Upgrade Required", "upgrade_required", message)
        return true
      }
      const handler = this.upgrades.get(path)
      if (handler !== undefined) {
        handler(request, socket, head)
        return true
      }
    }
    return super.emit(event, ...args)
  }
}

/** The server itself, for those who take upgrades. */
export class HttpServerHandle extends Context.Service<
  HttpServerHandle,
  {
    readonly server: Server
    /** Open connections, upgraded ones included. */
    readonly connections: () => number
    /** From now on upgrades of exactly this path are the handler's. */
    readonly onUpgrade: (path: string, handler: UpgradeHandler) => void
    /** Ends every connection, upgraded ones included. */
    readonly endConnections: Effect.Effect<void>
  }
>()("src/http/server/HttpServerHandle") {
  static readonly layer = Layer.sync(HttpServerHandle, () => {
    const server = new UpgradingServer()
    return HttpServerHandle.of({
      server,
      connections: () => server.openSockets.size,
      onUpgrade: (path, handler) => server.upgrades.set(path, handler),
      endConnections: Effect.sync(() => {
        for (const socket of server.openSockets) socket.destroy()
      })
    })
  })
}

/**
 * Listens where the settings say. When the process stops, requests under way may end within
 * {@link shutdownMillis}; what is still open then is cut.
 */
export const HttpServerLive = Layer.unwrap(
  Effect.gen(function* () {
    const { host, port } = yield* Settings
    const { endConnections, server } = yield* HttpServerHandle
    const cut = Layer.effectDiscard(Effect.addFinalizer(() => endConnections))
    return Layer.provideMerge(
      cut,
      NodeHttpServer.layer(() => server, {
        host,
        port,
        gracefulShutdownTimeout: shutdownMillis,
        websocket: { maxPayload: socket.frameMaxBytes, maxFragments: socket.fragmentsMax }
      })
    )
  })
)
