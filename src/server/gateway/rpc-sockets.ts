/**
 * The sockets of the native door. The RPC library reads and writes them, so their bounds are kept from
 * outside, once a second for all: cut is whoever has no events open in time, is not heard of, or reads
 * too slowly, as at the other door (decisions 3.6.5 and 3.6.7).
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

/** Unsent bytes of a socket; the largest of all frames is little more than half of them. */
const unsentMaxBytes = 2 * limits.outboxMaxBytes

/** Names the socket that a call came over; whoever invents a name is taken for silent. */
const socketHeader = "x-svc-socket"

interface NativeSocket {
  readonly connection: Connection
  /** Of the page that has opened it; what a call says of itself proves nothing. */
  readonly origin: string | undefined
  /** Since when it has no events open; undefined while it has. */
  waitingSince: number | undefined
  heardAt: number
  bytesRead: number
}

const isOver = (socket: NativeSocket, now: number): boolean => {
  const { connection, waitingSince = now } = socket
  if (connection.bytesRead !== socket.bytesRead) {
    socket.bytesRead = connection.bytesRead
    socket.heardAt = now
  }
  return (
    now - waitingSince >= limits.admitSeconds * second ||
    now - socket.heardAt >= limits.idleSeconds * second ||
    connection.writableLength > unsentMaxBytes
  )
}

export class NativeSockets extends Context.Service<
  NativeSockets,
  {
    /** Keeps the bounds of a request that becomes a socket, for as long as `served` takes. */
    readonly guard: <E, R>(
      served: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
    ) => Effect.Effect<
      HttpServerResponse.HttpServerResponse,
      E,
      R | HttpServerRequest.HttpServerRequest
    >
    /** Where the page of a call's socket is from, if it is one. */
    readonly originOf: (headers: Headers.Headers) => Effect.Effect<string | undefined, Unauthorized>
    /** The socket of a call has its events open, or, later, no more. */
    readonly waits: (headers: Headers.Headers, waits: boolean) => Effect.Effect<void>
  }
>()("server/gateway/rpc-sockets/NativeSockets") {
  static readonly layer = Layer.effect(
    NativeSockets,
    Effect.gen(function* () {
      const http = yield* HttpServerHandle
      const clock = yield* Clock.Clock
      const context = yield* Effect.context<Effect.Services<typeof newId.connection>>()
      const sockets = new Map<string, NativeSocket>()
      yield* Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        for (const socket of sockets.values()) {
          if (isOver(socket, now)) socket.connection.destroy()
        }
      }).pipe(Effect.repeat(Schedule.spaced(second)), Effect.forkScoped)

      const open = Effect.fnUntraced(function* ({ headers, socket: connection }: IncomingMessage) {
        const id = yield* Effect.provideContext(newId.connection, context)
        const now = clock.currentTimeMillisUnsafe()
        const { bytesRead } = connection
        const { origin } = headers
        sockets.set(id, { connection, origin, waitingSince: now, heardAt: now, bytesRead })
        return id
      })
      return NativeSockets.of({
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
              // A frame against the protocol, or an end without a goodbye.
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
        waits: (headers, waits) =>
          Effect.sync(() => {
            const socket = sockets.get(headers[socketHeader] ?? "")
            if (socket === undefined) return
            socket.waitingSince = waits ? clock.currentTimeMillisUnsafe() : undefined
          })
      })
    })
  )
}
