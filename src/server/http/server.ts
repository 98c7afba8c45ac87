/**
 * Node's HTTP server with limits on time and size. WebSocket paths take their upgrade requests here,
 * before the HTTP router; anything but a valid handshake is an ordinary request.
 */
import { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Clock, Context, Effect, Layer } from "effect"
import { frameMaxBytes } from "#rpc/client-limits"
import { monotonicMillis } from "#entities/monotonic"
import { hasBody } from "#server/platform/body-deadlines"
import { closeWithLinger, cutConnection } from "#server/platform/cut-connection"
import { Settings } from "#server/platform/settings/settings"
import { socketLimits } from "#server/platform/socket-limits"
import { ClientConnections } from "./client-connections.ts"
import { CompactMessage } from "./compact-message.ts"
import { Pipeline } from "./pipeline.ts"
import { refuse } from "./raw-response.ts"

/** New connections that the system keeps while the event loop is busy; it drops those beyond it. */
const acceptBacklogMax = 4096

/** Handles an upgrade request; the handler owns the socket from then on. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Serves hosts of apps and functions, where nothing of the service itself may answer. */
export interface AppHandler {
  readonly isFor: (request: IncomingMessage) => boolean
  /** Answers a request for such a host. Returns false for a request to the service itself. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Whether a handshake may go to {@link AppHandler.upgrade}. */
  readonly mayUpgrade: (request: IncomingMessage) => boolean
  readonly upgrade: UpgradeHandler
}

/** Timeouts in milliseconds. */
export const HttpBounds = Context.Reference("server/http/server/HttpBounds", {
  defaultValue: () => ({
    /** Timeout from the first byte, or the opening of the connection, to the end of the headers. */
    headersTimeout: 10_000,
    /** Timeout to the end of the body. */
    requestTimeout: 30_000,
    /**
     * Timeout to the end of a body of no bytes; larger ones have longer, see
     * `slowestBytesPerSecond`.
     */
    bodyTimeout: 10_000,
    /** Timeout to the end of a response, or of a part of a stream, in the same way. */
    responseTimeout: 30_000,
    /** Interval at which the timeouts are checked. */
    connectionsCheckingInterval: 5000,
    /** Timeout to the next request. */
    keepAliveTimeout: 65_000,
    /**
     * Timeout without a byte in either direction, including a response that the client does not
     * read.
     */
    timeout: 60_000
  })
})

/** Limits of a request, in bytes and headers. */
const maxHeaderSize = 16 * 1024
const maxHeadersCount = 100

/** Limits of a WebSocket on `/v1/realtime` and `/v1/rpc`. */
export const webSocketBounds = {
  perMessageDeflate: false,
  maxPayload: frameMaxBytes,
  maxFragments: socketLimits.fragmentsMax,
  maxBufferedChunks: socketLimits.bufferedChunksMax,
  /** Time in which the client has to answer a close frame, in milliseconds. */
  closeTimeout: 2000
}

/** Time that pending requests may take when the process stops. */
const shutdownMillis = 5000
const idleCheckMillis = 50

const pathOf = (request: IncomingMessage): string => (request.url ?? "").split("?", 1)[0] ?? ""

/** Distinct tokens, separated by commas (RFC 6455 section 4.1, RFC 9110 section 5.6.2). */
const areProtocols = (list: string): boolean => {
  const protocols = list.split(",").map((protocol) => protocol.trim())
  const isToken = (text: string) => /^[\w!#$%&'*+.^`|~-]+$/.test(text)
  return protocols.every(isToken) && new Set(protocols).size === protocols.length
}

/**
 * Whether a request is a valid WebSocket handshake (RFC 6455 section 4.2.1). One that has a body, or that a
 * proxy may parse differently, is an ordinary request.
 */
const isHandshake = ({ headers, method }: IncomingMessage): boolean =>
  method === "GET" &&
  headers.host?.includes(",") === false &&
  !hasBody({ headers }) &&
  headers.upgrade?.toLowerCase() === "websocket" &&
  headers["sec-websocket-version"] === "13" &&
  /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "") &&
  areProtocols(headers["sec-websocket-protocol"] ?? "none")

/** Node's code for a request that took too long. */
const lateCode = "ERR_HTTP_REQUEST_TIMEOUT"

/** Responses to what Node refuses before there is a request, by Node's error code. */
const refusals: Readonly<Record<string, readonly [status: number, code: string, text: string]>> = {
  HPE_HEADER_OVERFLOW: [431, "payload_too_large", "The headers are too large."],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "payload_too_large", "The chunk extensions are too large."],
  [lateCode]: [408, "invalid_request", "The request took too long."]
}

/** Refuses a request that could not be parsed. */
const refuseUnread = (error: NodeJS.ErrnoException, connection: Duplex): void => {
  if (error.code === "ECONNRESET" || !connection.writable) return
  const [status, code, message] = refusals[error.code ?? ""] ?? [
    400,
    "invalid_request",
    "This is not an HTTP request."
  ]
  refuse(connection, status, code, message)
}

/** Refusal of what is too much for one client address. */
const tooManyConnections = [
  429,
  "rate_limited",
  "This address has too many connections. Close some."
] as const

/** Response while the server listens before all routes are there, and after they are gone. */
const notServing = [503, "unavailable", "The service starts or stops. Try again."] as const

const refuseRequest = (
  response: ServerResponse,
  [status, code, message]: typeof tooManyConnections | typeof notServing
): void => {
  const retryAfterSeconds = 1
  const body = JSON.stringify({ error: { code, message, details: { retryAfterSeconds } } })
  response.writeHead(status, {
    "content-type": "application/json",
    "access-control-allow-origin": "*",
    "content-length": Buffer.byteLength(body),
    "retry-after": `${retryAfterSeconds}`,
    connection: "close"
  })
  response.end(body)
}

/** An HTTP server that routes upgrades of registered paths past the HTTP router. */
class UpgradingServer extends Server {
  readonly upgrades: ReadonlyMap<string, UpgradeHandler>
  readonly clients: ClientConnections
  readonly openSockets = new Set<Socket>()
  dropped = 0
  apps: AppHandler | undefined
  readonly #pipeline = new Pipeline()
  /**
   * Cuts the connection of a body in too many pieces, since reading the rest would cost the most.
   */
  readonly #cut = (message: CompactMessage): void => {
    this.clients.offended(message)
    message.socket.destroy()
  }
  readonly #bodyMillis: number

  constructor(
    upgrades: ReadonlyMap<string, UpgradeHandler>,
    maxConnections: number,
    clients: ClientConnections,
    { bodyTimeout: _, responseTimeout: __, timeout, ...bounds }: typeof HttpBounds.Service
  ) {
    super({
      ...bounds,
      // Uploads take longer than other bodies, so each request has a deadline of its own.
      requestTimeout: 0,
      IncomingMessage: CompactMessage,
      maxHeaderSize,
      noDelay: true,
      // The middleware refuses such requests in the usual error format.
      requireHostHeader: false,
      joinDuplicateHeaders: true,
      shouldUpgradeCallback: (request) =>
        isHandshake(request) && this.#upgradeOf(request) !== undefined
    })
    this.#bodyMillis = bounds.requestTimeout
    this.upgrades = upgrades
    this.clients = clients
    this.timeout = timeout
    this.maxHeadersCount = maxHeadersCount
    this.maxConnections = maxConnections
    this.on("clientError", (error, connection) => {
      const newest = this.#pipeline.pending(connection)
      if (newest === undefined || !newest.req.complete) return refuseUnread(error, connection)
      // The response to the previous request comes first.
      connection.pause()
      newest.once("close", () => refuseUnread(error, connection))
    })
    this.on("connect", (_, tunnel) => {
      refuse(tunnel, 405, "method_not_allowed", "This path does not support this method.")
    })
    // A server may ignore an expectation (RFC 9110 section 10.1.1).
    this.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) =>
      this.emit("request", request, response)
    )
    this.on("timeout", cutConnection)
    this.on("drop", () => {
      this.dropped += 1
    })
    this.on("connection", (connection) => {
      if (!clients.connect(connection)) {
        refuse(connection, ...tooManyConnections)
        return void connection.destroySoon()
      }
      this.openSockets.add(connection)
      connection.once("close", () => this.openSockets.delete(connection))
    })
  }

  /**
   * Node closes the connections that are idle at this moment. Here those follow that become idle later,
   * or have not sent anything: clients would keep them open for longer than a stop may take.
   */
  override close(callback?: (error?: Error) => void): this {
    const timer = setInterval(() => {
      this.closeIdleConnections()
      for (const connection of this.openSockets) {
        if (connection.bytesRead === 0) connection.destroy()
      }
    }, idleCheckMillis)
    return super.close((error) => {
      clearInterval(timer)
      callback?.(error)
    })
  }

  override emit(event: string, ...args: ReadonlyArray<unknown>): boolean {
    if (event === "request" || event === "checkContinue") return this.#inOrder(event, args)
    if (event !== "upgrade") return super.emit(event, ...args)
    const [request, stream, head] = args
    if (stream instanceof Duplex && this.#pipeline.pending(stream) !== undefined) {
      // The connection still belongs to the response before.
      stream.destroy()
      return true
    }
    if (request instanceof IncomingMessage && stream instanceof Duplex && Buffer.isBuffer(head)) {
      if (!this.clients.forward(request, (release) => stream.once("close", release))) {
        refuse(stream, ...tooManyConnections)
        return true
      }
      const handler = this.#upgradeOf(request)
      if (handler !== undefined) {
        handler(request, stream, head)
        return true
      }
      // The router may respond without an upgrade, and Node no longer applies its timeouts to the connection.
      stream.once("finish", () => closeWithLinger(stream))
    }
    return super.emit(event, ...args)
  }

  #upgradeOf(request: IncomingMessage): UpgradeHandler | undefined {
    if (this.apps?.isFor(request) !== true) return this.upgrades.get(pathOf(request))
    return this.apps.mayUpgrade(request) ? this.apps.upgrade : undefined
  }

  #inOrder(event: string, args: ReadonlyArray<unknown>): boolean {
    const [request, response] = args
    if (!(request instanceof IncomingMessage) || !(response instanceof ServerResponse)) {
      return super.emit(event, ...args)
    }
    if (request instanceof CompactMessage) {
      request.limitPieces(this.#cut)
      request.startBodyDeadline(this.#bodyMillis, () => {
        const late = Object.assign(new Error("The request took too long"), { code: lateCode })
        super.emit("clientError", late, request.socket)
      })
    }
    // Node drops what it has read behind an offer to upgrade, so a later request may lack its beginning.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    this.#pipeline.add(request, response, () => {
      if (this.listenerCount("request") === 0) return refuseRequest(response, notServing)
      if (this.clients.forward(request, (release) => response.once("close", release))) {
        if (this.apps?.serve(request, response) !== true) super.emit(event, ...args)
      } else {
        refuseRequest(response, tooManyConnections)
      }
    })
    return true
  }
}

/** Handle of the server, for upgrade handlers and metrics. */
export class HttpServerHandle extends Context.Service<
  HttpServerHandle,
  {
    readonly server: Server
    /** Open connections, upgraded ones included. */
    readonly connections: () => number
    /** Connections closed at once because the limit was reached. */
    readonly dropped: () => number
    /** Connections and requests refused because their client address has too many. */
    readonly refused: () => number
    /** Whether one more connection may become a WebSocket. */
    readonly hasRoom: () => boolean
    /** Sets the handler for upgrades of exactly this path. */
    readonly onUpgrade: (path: string, handler: UpgradeHandler) => void
    /** Sets the handler of requests for hosts of apps. */
    readonly serveApps: (handler: AppHandler) => void
    /** Closes every connection, including upgraded ones. */
    readonly endConnections: Effect.Effect<void>
  }
>()("server/http/server/HttpServerHandle") {
  static readonly layer = Layer.effect(
    HttpServerHandle,
    Effect.gen(function* () {
      const { connectionsPerAddress, maxConnections, trustedProxies } = yield* Settings
      const now = monotonicMillis(yield* Clock.Clock)
      const clients = new ClientConnections(connectionsPerAddress, trustedProxies, now)
      const socketsMax = maxConnections * socketLimits.shareOfConnections
      const upgrades = new Map<string, UpgradeHandler>()
      const server = new UpgradingServer(upgrades, maxConnections, clients, yield* HttpBounds)
      return HttpServerHandle.of({
        server,
        connections: () => server.openSockets.size,
        dropped: () => server.dropped,
        refused: () => clients.refused,
        hasRoom: () => server.openSockets.size <= socketsMax,
        serveApps: (handler) => {
          server.apps = handler
        },
        onUpgrade: (path, handler) => upgrades.set(path, handler),
        endConnections: Effect.sync(() => {
          for (const connection of server.openSockets) connection.destroy()
        })
      })
    })
  )
}

/**
 * Listens on the address of the settings. When the process stops, pending requests may finish
 * within {@link shutdownMillis}; then the server closes all connections.
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
        // Linux keeps `net.core.somaxconn` at most. A client that is dropped tries again after 1, 3 and 7 seconds.
        backlog: acceptBacklogMax,
        gracefulShutdownTimeout: shutdownMillis,
        websocket: webSocketBounds
      })
    )
  })
)
