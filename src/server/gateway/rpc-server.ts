/**
 * The native door `/v1/rpc`: Effect RPC over WebSocket for TypeScript game servers, with the same
 * handlers as the JSON door. `events` opens the connection; the other procedures of the same client
 * act for it. A publishable key comes with the player's token in `Authorization`; a secret key names
 * the player it acts for in `X-Svc-Player`.
 */
import { Cause, Clock, DateTime, Effect, Layer, Option, Queue, Schema, Stream } from "effect"
import { type Headers, HttpRouter } from "effect/http"
import { type Rpc, RpcSerialization, RpcServer } from "effect/rpc"
import {
  channelCreate,
  channelJoin,
  channelLeave,
  channelModerate,
  channelSend
} from "#rpc/channels"
import {
  type CodedError,
  FeatureDisabled,
  PlayerBanned,
  PlayerRequired,
  RateLimited,
  TokenExpired,
  Unauthorized,
  Unavailable
} from "#rpc/errors/codes"
import { rooms } from "#rpc/limits"
import { cancelMatch, quickMatch } from "#rpc/matchmaking"
import { paths } from "#rpc/paths"
import { iceServers, signal } from "#rpc/peers"
import { ping, RealtimeRpcs, ServerEvent } from "#rpc/realtime"
import { create, join, leave, lock, resume, send, setMyState, setState } from "#rpc/rooms"
import type { Frame } from "#server/platform/outbox"
import { FrameBucket } from "#server/platform/token-bucket"
import type { ReplyCallback } from "#server/links/entity-link"
import type {
  FrameData,
  FrameHandlers,
  FramePayload,
  FrameRpc,
  FrameType
} from "#server/links/frames"
import { Hub } from "#server/links/hub"
import type { FrameSink, PlayerConnection } from "#server/links/player-connection"
import { Configs } from "#server/features/config/service"
import { admit, offersRealtime, openConnection, welcome } from "./admission.ts"
import { type EnabledFeatures, featureError } from "./enabled-features.ts"
import { Frames } from "./frame-handlers.ts"
import { NativeSockets } from "./rpc-sockets.ts"

type EventError = FeatureDisabled | PlayerBanned | TokenExpired | Unauthorized | Unavailable

/** An open client of the native door. */
interface RpcConnection {
  readonly connection: PlayerConnection
  readonly bucket: FrameBucket
  /** What the environment offers; kept as the config changes. */
  offers: EnabledFeatures
  /** Ends the events, and with them the connection. */
  readonly end: (error: EventError) => void
}

const notOffered = () =>
  new FeatureDisabled({
    details: { feature: "multiplayer", configPath: "features.multiplayer" }
  })

const decodeEvent = Schema.decodeUnknownSync(Schema.fromJsonString(ServerEvent))

/** A door onto a bounded queue; a client that reads too slowly loses its connection. */
const queueDoor = (queue: Queue.Queue<ServerEvent, EventError>): FrameSink => ({
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

/** The events end with the token that opened them; a secret key's never do. */
const endWith = Effect.fnUntraced(function* (end: RpcConnection["end"], expiresAt: number) {
  if (!Number.isFinite(expiresAt)) return
  const left = expiresAt - (yield* Clock.currentTimeMillis)
  yield* Effect.sync(() => end(new TokenExpired())).pipe(
    Effect.delay(Math.max(0, left)),
    Effect.forkScoped
  )
})

const bearer = (headers: Headers.Headers): string | undefined => {
  const value = headers["authorization"]
  return value?.toLowerCase().startsWith("bearer ") === true ? value.slice(7).trim() : undefined
}

/** Opens the connection of a client and streams what it is told. */
const openEvents = Effect.fnUntraced(function* (
  clients: Map<number, RpcConnection>,
  clientId: number,
  headers: Headers.Headers
) {
  const hub = yield* Hub
  const sockets = yield* NativeSockets
  const { environment, player } = yield* admit({
    key: headers["x-svc-key"],
    token: bearer(headers),
    actsFor: headers["x-svc-player"],
    origin: yield* sockets.originOf(headers),
    anonymous: false
  })
  if (player === undefined) return yield* new PlayerRequired()
  const offers = yield* offersRealtime(environment.environmentId)
  const queue = yield* Queue.bounded<ServerEvent, EventError>(rooms.watchBufferItems)
  const { connection, seat } = yield* openConnection(player, queueDoor(queue))
  const bucket = new FrameBucket(yield* Clock.currentTimeMillis)
  const end = (error: EventError): void => {
    Queue.failCauseUnsafe(queue, Cause.fail(error))
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => clients.set(clientId, { connection, bucket, offers, end })),
    () =>
      Effect.suspend(() => {
        hub.connections.delete(connection.connectionId)
        connection.close(false)
        if (clients.get(clientId)?.connection !== connection) return Effect.void
        clients.delete(clientId)
        return sockets.waits(headers, true)
      })
  )
  yield* sockets.waits(headers, false)
  yield* endWith(end, player.expiresAt)
  const first = yield* welcome({
    connectionId: connection.connectionId,
    player,
    tokenExpiresAt: Number.isFinite(player.expiresAt) ? iso(player.expiresAt) : null,
    seat
  })
  return Stream.concat(Stream.make(first), Stream.fromQueue(queue))
})

type FrameError<T extends FrameType> = Rpc.Error<Extract<FrameRpc, { _tag: T }>>

/** An answer's error as its class, so that the client gets it typed. */
const typed: {
  readonly [T in FrameType]: (error: CodedError) => Option.Option<FrameError<T>>
} = {
  create: Schema.decodeUnknownOption(create.errorSchema),
  join: Schema.decodeUnknownOption(join.errorSchema),
  leave: Schema.decodeUnknownOption(leave.errorSchema),
  resume: Schema.decodeUnknownOption(resume.errorSchema),
  send: Schema.decodeUnknownOption(send.errorSchema),
  setState: Schema.decodeUnknownOption(setState.errorSchema),
  setMyState: Schema.decodeUnknownOption(setMyState.errorSchema),
  lock: Schema.decodeUnknownOption(lock.errorSchema),
  quickMatch: Schema.decodeUnknownOption(quickMatch.errorSchema),
  cancelMatch: Schema.decodeUnknownOption(cancelMatch.errorSchema),
  signal: Schema.decodeUnknownOption(signal.errorSchema),
  iceServers: Schema.decodeUnknownOption(iceServers.errorSchema),
  channelJoin: Schema.decodeUnknownOption(channelJoin.errorSchema),
  channelCreate: Schema.decodeUnknownOption(channelCreate.errorSchema),
  channelLeave: Schema.decodeUnknownOption(channelLeave.errorSchema),
  channelSend: Schema.decodeUnknownOption(channelSend.errorSchema),
  channelModerate: Schema.decodeUnknownOption(channelModerate.errorSchema),
  ping: Schema.decodeUnknownOption(ping.errorSchema)
}

/** Hands a procedure to the frame handler of its name, for the connection of its client. */
const forward =
  (clients: ReadonlyMap<number, RpcConnection>, handlers: FrameHandlers, now: () => number) =>
  <T extends FrameType>(t: T) =>
  (payload: FramePayload<T>, { client }: { readonly client: Rpc.ServerClient }) =>
    Effect.callback<FrameData<T>, FrameError<T>>((resume) => {
      const answered: ReplyCallback<FrameData<T>> = (answer) => {
        if (answer.ok) return resume(Effect.succeed(answer.data))
        const error = typed[t](answer.error)
        resume(Option.isSome(error) ? Effect.fail(error.value) : Effect.die(answer.error))
      }
      const open = clients.get(client.id)
      if (open === undefined) {
        const message = "Open the events stream first."
        return answered({ ok: false, error: new Unauthorized({ message }) })
      }
      if (!open.bucket.take(now())) {
        const { retryAfterSeconds } = open.bucket
        return answered({ ok: false, error: new RateLimited({ details: { retryAfterSeconds } }) })
      }
      const error = featureError(open.offers, t)
      if (error !== undefined) return answered({ ok: false, error })
      handlers[t](open.connection, payload, answered)
    })

/** A config push may take rooms and channels away from open connections. */
const followConfig = Effect.fnUntraced(function* (clients: ReadonlyMap<number, RpcConnection>) {
  const configs = yield* Configs
  yield* configs.changes.pipe(
    Stream.runForEach((environmentId) =>
      Effect.map(offersRealtime(environmentId), (offers) => {
        for (const client of clients.values()) {
          if (client.connection.environmentId !== environmentId) continue
          client.offers = offers
          if (!offers.any) client.end(notOffered())
        }
      })
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
      create: frame("create"),
      join: frame("join"),
      leave: frame("leave"),
      resume: frame("resume"),
      send: frame("send"),
      setState: frame("setState"),
      setMyState: frame("setMyState"),
      lock: frame("lock"),
      quickMatch: frame("quickMatch"),
      cancelMatch: frame("cancelMatch"),
      signal: frame("signal"),
      iceServers: frame("iceServers"),
      channelJoin: frame("channelJoin"),
      channelCreate: frame("channelCreate"),
      channelLeave: frame("channelLeave"),
      channelSend: frame("channelSend"),
      channelModerate: frame("channelModerate"),
      ping: frame("ping")
    })
  })
)

const ProtocolLive = Layer.effect(
  RpcServer.Protocol,
  Effect.gen(function* () {
    const router = yield* HttpRouter.HttpRouter
    const { guard } = yield* NativeSockets
    const { httpEffect, protocol } = yield* RpcServer.makeProtocolWithHttpEffectWebsocket
    yield* router.add("GET", paths.rpc, guard(httpEffect))
    return protocol
  })
)

/** The native endpoint, for the HTTP router. */
export const RpcServerLive = RpcServer.layer(RealtimeRpcs, { concurrency: "unbounded" }).pipe(
  Layer.provide([RealtimeHandlers, ProtocolLive]),
  Layer.provide([NativeSockets.layer, RpcSerialization.layerJson])
)
