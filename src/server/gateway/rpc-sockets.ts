/**
 * Bounds for the sockets of native RPC. The RPC library reads and writes them, so they are checked from
 * outside, once a second for all. A socket is cut if it opens no events stream in time, sends nothing for
 * too long, or reads too slowly.
 */
import { IncomingMessage } from "node:http"
import type { Socket as Connection } from "node:net"
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { Headers, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Socket } from "effect/socket"
import { Unauthorized, Unavailable } from "#rpc/errors/codes"
import { newId } from "#rpc/ids"
import { socket as limits } from "#rpc/limits"
import { errorResponse } from "#server/http/errors"
import { HttpServerHandle } from "#server/http/server"

const second = 1000

/** Bound of a socket's unsent bytes; the largest frame takes little more than half of it. */
const unsentMaxBytes = 2 * limits.outboxMaxBytes

/** Header that names the socket of a call. A call with another name leaves its socket to be cut. */
const socketHeader = "x-svc-socket"

interface RpcSocket {
  readonly connection: Connection
  /** The origin of the page that opened the socket; the headers of a call prove nothing. */
  readonly origin: string | undefined
  /** Since when it has had no events stream open; undefined while it has one. */
  waitingSince: number | undefined
  receivedAt: number
  bytesRead: number
}

const isExpired = (socket: RpcSocket, now: number): boolean => {
  const { connection, waitingSince = now } = socket
  if (connection.bytesRead !== socket.bytesRead) {
    socket.bytesRead = connection.bytesRead
    socket.receivedAt = now
  }
  return (
    now - waitingSince >= limits.admitSeconds * second ||
    now - socket.receivedAt >= limits.idleSeconds * second ||
    connection.writableLength > unsentMaxBytes
  )
}

export class RpcSockets extends Context.Service<
  RpcSockets,
  {
    /** Keeps a request that becomes a socket within its bounds while `served` runs. */
    readonly guard: <E, R>(
      served: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
    ) => Effect.Effect<
      HttpServerResponse.HttpServerResponse,
      E,
      R | HttpServerRequest.HttpServerRequest
    >
    /** The origin of the page that opened the socket of a call, if a page did. */
    readonly originOf: (headers: Headers.Headers) => Effect.Effect<string | undefined, Unauthorized>
    /** Notes whether the socket of a call is without an events stream. */
    readonly setWaiting: (headers: Headers.Headers, waiting: boolean) => Effect.Effect<void>
  }
>()("server/gateway/rpc-sockets/RpcSockets") {
  static readonly layer = Layer.effect(
    RpcSockets,
    Effect.gen(function* () {
      const http = yield* HttpServerHandle
      const clock = yield* Clock.Clock
      const context = yield* Effect.context<Effect.Services<typeof newId.connection>>()
      const sockets = new Map<string, RpcSocket>()
      yield* Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        for (const socket of sockets.values()) {
          if (isExpired(socket, now)) socket.connection.destroy()
        }
      }).pipe(Effect.repeat(Schedule.spaced(second)), Effect.forkScoped)

      const open = Effect.fnUntraced(function* ({ headers, socket: connection }: IncomingMessage) {
        const id = yield* Effect.provideContext(newId.connection, context)
        const now = clock.currentTimeMillisUnsafe()
        const { bytesRead } = connection
        const { origin } = headers
        sockets.set(id, { connection, origin, waitingSince: now, receivedAt: now, bytesRead })
        return id
      })
      return RpcSockets.of({
        guard: (served) =>
          Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
            const { source } = request
            if (!(source instanceof IncomingMessage)) return served
            if (!http.hasRoom()) {
              return Effect.succeed(errorResponse(Unavailable, new Unavailable()))
            }
            return Effect.acquireUseRelease(
              open(source),
              (id) => {
                const headers = Headers.set(request.headers, socketHeader, id)
                return Effect.provideService(
                  served,
                  HttpServerRequest.HttpServerRequest,
                  request.modify({ headers })
                )
              },
              (id) => Effect.sync(() => sockets.delete(id))
            ).pipe(
              // A frame that violates the protocol, or a connection that broke without a close.
              Effect.catchDefect((defect) =>
                Socket.isSocketError(defect)
                  ? Effect.succeed(HttpServerResponse.empty())
                  : Effect.die(defect)
              )
            )
          }),
        originOf: (headers) =>
          Effect.suspend(() => {
            const socket = sockets.get(headers[socketHeader] ?? "")
            return socket === undefined
              ? Effect.fail(new Unauthorized())
              : Effect.succeed(socket.origin)
          }),
        setWaiting: (headers, waiting) =>
          Effect.sync(() => {
            const socket = sockets.get(headers[socketHeader] ?? "")
            if (socket === undefined) return
            socket.waitingSince = waiting ? clock.currentTimeMillisUnsafe() : undefined
          })
      })
    })
  )
}
