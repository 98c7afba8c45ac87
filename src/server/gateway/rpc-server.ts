/**
 * Native RPC on `/v1/rpc`: Effect RPC over WebSocket for TypeScript game servers, with the same frame
 * handlers as `/v1/realtime`. `events` opens the connection; the other procedures of the same client act
 * for it. A publishable key comes with the player's token in `Authorization`; a secret key names the
 * player it acts for in `X-Svc-Player`.
 */
import { Cause, Clock, DateTime, Effect, Layer, Option, Queue, Schema, Stream } from "effect"
import { type Headers, HttpRouter } from "effect/http"
import { type Rpc, RpcSerialization, RpcServer } from "effect/rpc"
import {
  FeatureDisabled,
  PlayerBanned,
  PlayerRequired,
  RateLimited,
  TokenExpired,
  Unauthorized,
  Unavailable
} from "#rpc/errors/codes"
import { rooms } from "#rpc/limits"
import { paths } from "#rpc/paths"
import { ClientFrames, RealtimeRpcs, ServerEvent } from "#rpc/realtime"
import { forEachInSlices } from "#server/platform/slices"
import type { Frame } from "#server/platform/socket-outbox"
import { FrameBucket } from "#server/platform/token-bucket"
import type { ReplyCallback } from "#server/links/entity-link"
import {
  type EnabledFeatures,
  featureError,
  type FrameData,
  type FrameFailure,
  type FrameHandlers,
  type FramePayload,
  frameTable,
  type FrameType
} from "#server/links/frames"
import { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import type { FrameSink } from "#server/links/subscriber"
import { Configs } from "#server/features/config/service"
import { admit, enabledFeatures, featuresOf, openConnection, welcome } from "./admission.ts"
import { Frames } from "./frame-handlers.ts"
import { RpcSockets } from "./rpc-sockets.ts"

type EventError = FeatureDisabled | PlayerBanned | TokenExpired | Unauthorized | Unavailable

/** A client with an open events stream. */
interface RpcConnection {
  readonly connection: PlayerConnection
  readonly bucket: FrameBucket
  /** Updated by config pushes. */
  features: EnabledFeatures
  /** Ends the events stream, and with it the connection. */
  readonly end: (error: EventError) => void
}

const multiplayerDisabled = () =>
  new FeatureDisabled({
    details: { feature: "multiplayer", configPath: "features.multiplayer" }
  })

const decodeEvent = Schema.decodeUnknownSync(Schema.fromJsonString(ServerEvent))

/** Sends frames to a bounded queue; a client that reads too slowly loses its connection. */
const queueSink = (queue: Queue.Queue<ServerEvent, EventError>): FrameSink => ({
  push: (frame: Frame) => {
    if (!Queue.offerUnsafe(queue, decodeEvent(frame.text))) {
      Queue.failCauseUnsafe(queue, Cause.fail(new Unavailable()))
    }
  },
  close: (_, message, error) => {
    const reason = error instanceof PlayerBanned ? error : new Unauthorized({ message })
    Queue.failCauseUnsafe(queue, Cause.fail(reason))
  }
})

const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** Ends the events stream when the token that opened it expires; a secret key never does. */
const endWith = Effect.fnUntraced(function* (end: RpcConnection["end"], expiresAt: number) {
  if (!Number.isFinite(expiresAt)) return
  const remaining = expiresAt - (yield* Clock.currentTimeMillis)
  yield* Effect.sync(() => end(new TokenExpired())).pipe(
    Effect.delay(Math.max(0, remaining)),
    Effect.forkScoped
  )
})

const bearer = (headers: Headers.Headers): string | undefined => {
  const value = headers["authorization"]
  return value?.toLowerCase().startsWith("bearer ") === true ? value.slice(7).trim() : undefined
}

/** Opens the connection of a client, and streams its events. */
const openEvents = Effect.fnUntraced(function* (
  clients: Map<number, RpcConnection>,
  clientId: number,
  headers: Headers.Headers
) {
  const hub = yield* Hub
  const sockets = yield* RpcSockets
  const { environment, player } = yield* admit({
    key: headers["x-svc-key"],
    token: bearer(headers),
    actsFor: headers["x-svc-player"],
    origin: yield* sockets.originOf(headers),
    anonymous: false
  })
  if (player === undefined) return yield* new PlayerRequired()
  const features = yield* enabledFeatures(environment.environmentId)
  const queue = yield* Queue.bounded<ServerEvent, EventError>(rooms.watchBufferItems)
  const { connection, seat } = yield* openConnection(player, queueSink(queue))
  const bucket = new FrameBucket(yield* Clock.currentTimeMillis)
  const end = (error: EventError): void => {
    Queue.failCauseUnsafe(queue, Cause.fail(error))
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => clients.set(clientId, { connection, bucket, features, end })),
    () =>
      Effect.suspend(() => {
        hub.connections.delete(connection)
        connection.close(false)
        if (clients.get(clientId)?.connection !== connection) return Effect.void
        clients.delete(clientId)
        return sockets.setWaiting(headers, true)
      })
  )
  yield* sockets.setWaiting(headers, false)
  yield* endWith(end, player.expiresAt)
  const first = yield* welcome({
    connectionId: connection.connectionId,
    player,
    tokenExpiresAt: Number.isFinite(player.expiresAt) ? iso(player.expiresAt) : null,
    seat
  })
  return Stream.concat(Stream.make(first), Stream.fromQueue(queue))
})

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
  (clients: ReadonlyMap<number, RpcConnection>, handlers: FrameHandlers, now: () => number) =>
  <T extends FrameType>(t: T): Procedure<T> => {
    const decodeError = errorDecoderFor(t)
    return (payload, { client }) =>
      Effect.callback((resume) => {
        const onReply: ReplyCallback<FrameData<T>> = (result) => {
          if (result.ok) return resume(Effect.succeed(result.data))
          const error = decodeError(result.error)
          resume(Option.isSome(error) ? Effect.fail(error.value) : Effect.die(result.error))
        }
        const open = clients.get(client.id)
        if (open === undefined) {
          const message = "Open the events stream first."
          return onReply({ ok: false, error: new Unauthorized({ message }) })
        }
        if (!open.bucket.take(now())) {
          const { retryAfterSeconds } = open.bucket
          return onReply({ ok: false, error: new RateLimited({ details: { retryAfterSeconds } }) })
        }
        const error = featureError(open.features, t)
        if (error !== undefined) return onReply({ ok: false, error })
        handlers[t](open.connection, payload, onReply, Number.POSITIVE_INFINITY)
      })
  }

/** Applies config pushes to the features of open connections. */
const followConfig = Effect.fnUntraced(function* (clients: ReadonlyMap<number, RpcConnection>) {
  const configs = yield* Configs
  yield* configs.changes.pipe(
    Stream.runForEachArray((environmentIds) =>
      Effect.flatMap(featuresOf(environmentIds), (features) =>
        forEachInSlices(clients.values(), (client) => {
          const enabled = features.get(client.connection.environmentId)
          if (enabled === undefined) return
          client.features = enabled
          if (!enabled.any) client.end(multiplayerDisabled())
        })
      )
    ),
    Effect.forkScoped
  )
})

const RealtimeHandlers = RealtimeRpcs.toLayer(
  Effect.gen(function* () {
    const handlers = yield* Frames
    const clock = yield* Clock.Clock
    const clients = new Map<number, RpcConnection>()
    yield* followConfig(clients)
    const frame = forward(clients, handlers, () => clock.currentTimeMillisUnsafe())
    return RealtimeRpcs.of({
      events: (_, { client, headers }) => Stream.unwrap(openEvents(clients, client.id, headers)),
      ...frameTable<Procedures>(frame)
    })
  })
)

const ProtocolLive = Layer.effect(
  RpcServer.Protocol,
  Effect.gen(function* () {
    const router = yield* HttpRouter.HttpRouter
    const { guard } = yield* RpcSockets
    const { httpEffect, protocol } = yield* RpcServer.makeProtocolWithHttpEffectWebsocket
    yield* router.add("GET", paths.rpc, guard(httpEffect))
    return protocol
  })
)

/** Serves native RPC on the HTTP router. */
export const RpcServerLive = RpcServer.layer(RealtimeRpcs, { concurrency: "unbounded" }).pipe(
  Layer.provide([RealtimeHandlers, ProtocolLive]),
  Layer.provide([RpcSockets.layer, RpcSerialization.layerJson])
)
