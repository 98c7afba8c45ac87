/**
 * Native RPC on `/v1/rpc`: Effect RPC over WebSocket for TypeScript game servers, with the same frame
 * handlers as `/v1/realtime`. `events` opens the connection; the other procedures of the same client act
 * for it. A publishable key comes with the player's token in `Authorization`; a secret key names the
 * player it acts for in `X-Svc-Player`.
 */
import type { IncomingMessage } from "node:http"
import { Clock, Context, DateTime, Effect, Layer, Option, Queue, Schema, Stream } from "effect"
import { Headers } from "effect/http"
import { type Rpc, type RpcMessage, RpcSerialization, RpcServer } from "effect/rpc"
import {
  type CodedError,
  PlayerRequired,
  TokenExpired,
  Unauthorized,
  Unavailable
} from "#rpc/errors/codes"
import { paths } from "#rpc/paths"
import { ClientFrames, closeCodes, EventsError, RealtimeRpcs } from "#rpc/realtime"
import type { Frame } from "#server/platform/socket-outbox"
import type { ReplyCallback } from "#server/links/entity-link"
import {
  type FrameData,
  type FrameFailure,
  type FrameHandlers,
  type FramePayload,
  frameTable,
  type FrameType
} from "#server/links/frame-handler"
import { waitingSince } from "#server/cluster/waiting-players"
import { Hub } from "#server/links/hub"
import type { FrameSink } from "#server/links/subscriber"
import {
  admit,
  arrival,
  featureErrorsOf,
  openConnection,
  unavailableAfterFault,
  welcome
} from "./admission.ts"
import { closeCodeOf, type UpgradedSocket } from "./client-socket.ts"
import { type EventError, EventQueue } from "./event-queue.ts"
import { Frames } from "./frame-handlers.ts"
import { Gateway } from "./gateway.ts"
import { RpcSocket } from "./rpc-socket.ts"

const decodeEventError = Schema.decodeUnknownOption(EventsError)

/**
 * Sends frames to the queue of an events stream, and closes its socket. A client that reads too slowly
 * loses its connection.
 */
const streamSink = (socket: RpcSocket, queue: EventQueue, isServer: boolean): FrameSink => ({
  // A game server has one address for all the players it acts for.
  ...(isServer ? {} : { address: socket.address }),
  push: (frame: Frame) => {
    if (queue.offer(frame)) return
    socket.close(closeCodes.slowConsumer, "slow_consumer", new Unavailable())
  },
  close: (code, reason, error) => socket.close(code, reason, error)
})

/** The error with which an events stream ends, as far as the client knows it. */
const streamErrorOf = (error: CodedError): EventError => {
  const decoded = decodeEventError(error)
  return Option.isSome(decoded) ? decoded.value : new Unauthorized({ message: error.message })
}

const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** Closes the socket when the token that opened its stream expires; a secret key never does. */
const closeAtExpiry = Effect.fnUntraced(function* (socket: RpcSocket, expiresAt: number) {
  if (!Number.isFinite(expiresAt)) return
  const remaining = expiresAt - (yield* Clock.currentTimeMillis)
  yield* Effect.sync(() =>
    socket.close(closeCodes.tokenExpired, "token_expired", new TokenExpired())
  ).pipe(Effect.delay(Math.max(0, remaining)), Effect.forkScoped)
})

const bearer = (headers: Headers.Headers): string | undefined => {
  const value = headers["authorization"]
  return value?.toLowerCase().startsWith("bearer ") === true ? value.slice(7).trim() : undefined
}

/** Checks the credentials of an events stream, and opens the connection of its player. */
const openStream = Effect.fnUntraced(function* (socket: RpcSocket, headers: Headers.Headers) {
  const hub = yield* Hub
  const { host } = yield* Gateway
  const arrivedAt = yield* arrival
  const { environment, keyHash, player } = yield* admit({
    key: headers["x-svc-key"],
    token: bearer(headers),
    actsFor: headers["x-svc-player"],
    origin: socket.origin,
    anonymous: false
  })
  if (player === undefined) return yield* new PlayerRequired()
  const { environmentId } = environment
  socket.setFeatureErrors(yield* featureErrorsOf(environmentId))
  const queue = yield* EventQueue.make(host.outboxBudget, socket)
  const sink = streamSink(socket, queue, environment.keyKind === "secret")
  const { connection, seat } = yield* openConnection(player, sink).pipe(
    waitingSince(environmentId, arrivedAt)
  )
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      socket.accept({ environmentId, keyHash, player, connection, listener: undefined }, (error) =>
        queue.fail(streamErrorOf(error))
      )
    ),
    () =>
      Effect.sync(() => {
        hub.connections.delete(connection)
        connection.close("lost")
        socket.leaveStream()
      })
  )
  yield* closeAtExpiry(socket, player.expiresAt)
  const first = yield* welcome({
    connectionId: connection.connectionId,
    player,
    tokenExpiresAt: Number.isFinite(player.expiresAt) ? iso(player.expiresAt) : null,
    seat
  })
  return Stream.concat(Stream.make(first), queue.events)
})

/** Streams the events of a client; a client whose credentials are refused is closed as at the other endpoint. */
const openEvents = (
  socket: RpcSocket | undefined,
  requestId: RpcMessage.RequestId,
  headers: Headers.Headers
) =>
  socket?.openStream(requestId) === true
    ? Effect.tapError(unavailableAfterFault(openStream(socket, headers)), (error) =>
        Effect.sync(() => socket.close(closeCodeOf(error), error._tag, error))
      )
    : Effect.fail(new Unauthorized({ message: "This socket has an events stream already." }))

type ErrorDecoder<T extends FrameType> = (error: unknown) => Option.Option<FrameFailure<T>>

/** Decodes an error to its class, so that the client receives it typed. */
function errorDecoderFor<T extends FrameType>(t: T): ErrorDecoder<T>
function errorDecoderFor(t: FrameType): (error: unknown) => Option.Option<unknown> {
  const schema = ClientFrames.requests.get(t)?.errorSchema
  return schema === undefined ? () => Option.none() : Schema.decodeUnknownOption(schema)
}

type Procedure<T extends FrameType> = (
  payload: FramePayload<T>,
  options: { readonly client: Rpc.ServerClient }
) => Effect.Effect<FrameData<T>, FrameFailure<T>>

type Procedures = { readonly [T in FrameType]: Procedure<T> }

/** Forwards a procedure to the frame handler of its name, for the connection of its client. */
const forward =
  (sockets: ReadonlyMap<number, RpcSocket>, handlers: FrameHandlers) =>
  <T extends FrameType>(t: T): Procedure<T> => {
    const decodeError = errorDecoderFor(t)
    return (payload, { client }) =>
      Effect.callback((resume) => {
        const onReply: ReplyCallback<FrameData<T>> = (result) => {
          if (result.ok) return resume(Effect.succeed(result.data))
          const error = decodeError(result.error)
          resume(Option.isSome(error) ? Effect.fail(error.value) : Effect.die(result.error))
        }
        const { connection, error } = sockets.get(client.id)?.connectionFor(t) ?? {}
        if (error !== undefined) return onReply({ ok: false, error })
        if (connection === undefined) {
          const message = "Open the events stream first."
          return onReply({ ok: false, error: new Unauthorized({ message }) })
        }
        handlers[t](connection, payload, onReply, Number.POSITIVE_INFINITY)
      })
  }

/** The sockets of this endpoint, by the id that the RPC server knows. */
class RpcSockets extends Context.Service<RpcSockets, Map<number, RpcSocket>>()(
  "server/gateway/rpc-server/RpcSockets"
) {
  static readonly layer = Layer.sync(RpcSockets, () => RpcSockets.of(new Map()))
}

const RealtimeHandlers = RealtimeRpcs.toLayer(
  Effect.gen(function* () {
    const handlers = yield* Frames
    const sockets = yield* RpcSockets
    return RealtimeRpcs.of({
      events: (_, { client, headers, requestId }) =>
        Stream.unwrap(openEvents(sockets.get(client.id), requestId, headers)),
      ...frameTable<Procedures>(forward(sockets, handlers))
    })
  })
)

/** Protocol that carries the messages of the RPC server over the sockets of the gateway. */
const ProtocolLive = Layer.effect(
  RpcServer.Protocol,
  Effect.gen(function* () {
    const gateway = yield* Gateway
    const sockets = yield* RpcSockets
    const disconnects = yield* Queue.unbounded<number>()
    let opened = 0
    return yield* RpcServer.Protocol.make((write) => {
      const open = (upgraded: UpgradedSocket, request: IncomingMessage): RpcSocket => {
        const id = (opened += 1)
        const headers = Object.entries(Headers.fromInput(request.headers))
        const onDisconnected = (): void => {
          if (sockets.delete(id)) Queue.offerUnsafe(disconnects, id)
        }
        const socket = new RpcSocket(gateway.host, { id, headers, write, onDisconnected }, upgraded)
        sockets.set(id, socket)
        return socket
      }
      return Effect.as(gateway.serve(paths.rpc, open), {
        disconnects,
        send: (id, message) => Effect.sync(() => sockets.get(id)?.send(message)),
        end: () => Effect.void,
        clientIds: Effect.sync(() => new Set(sockets.keys())),
        initialMessage: Effect.succeedNone,
        supportsAck: true,
        supportsTransferables: false,
        supportsSpanPropagation: true,
        supportsNotifications: true,
        codecFor: RpcSerialization.json.codecFor
      })
    })
  })
)

/** Drains before the RPC server ends its calls, so that rooms keep the seats. */
const DrainLive = Layer.effectDiscard(
  Effect.flatMap(Gateway, ({ drain }) => Effect.addFinalizer(() => drain))
)

/** Serves native RPC. */
export const RpcServerLive = DrainLive.pipe(
  Layer.provideMerge(RpcServer.layer(RealtimeRpcs, { concurrency: "unbounded" })),
  Layer.provide([RealtimeHandlers, ProtocolLive]),
  Layer.provide(RpcSockets.layer)
)
