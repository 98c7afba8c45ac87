/**
 * Gateway of `/v1/realtime`: accepts WebSocket upgrades, admits sockets, sweeps them once a second, and
 * closes them all with 1012 when the node drains. Rooms keep their seats then.
 */
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { Clock, Context, DateTime, Effect, Layer, Result, Schedule, Schema, Stream } from "effect"
import { WebSocketServer } from "ws"
import { type CodedError, InvalidKey, RateLimited, Unauthorized } from "#rpc/errors/codes"
import { newId } from "#rpc/ids"
import { socket as limits } from "#rpc/limits"
import { paths } from "#rpc/paths"
import { AuthFrame, type CloseCode, closeCodes } from "#rpc/realtime"
import { addressOf } from "#server/platform/client-address"
import { forEachInSlices } from "#server/platform/slices"
import { Frame, WriteStats } from "#server/platform/socket-outbox"
import { Settings } from "#server/platform/settings/settings"
import { Membership } from "#server/cluster/membership"
import { traced } from "#server/links/frame-effects"
import type { FrameMembers } from "#server/links/frames"
import { Hub } from "#server/links/hub"
import { Listener } from "#server/links/listener"
import { ListenerFrames } from "#server/features/channels/frames"
import { Configs } from "#server/features/config/service"
import { AccessTokens } from "#server/features/sessions/tokens"
import { refuse } from "#server/http/raw-response"
import { HttpServerHandle, webSocketBounds } from "#server/http/server"
import {
  admit,
  type AdmissionServices,
  enabledFeatures,
  featuresOf,
  openConnection,
  sessionNow,
  welcome
} from "./admission.ts"
import { Frames } from "./frame-handlers.ts"
import { type Admission, FrameStats, RealtimeSocket, type SocketGateway } from "./socket.ts"

const drainMillis = 1500
const drainStepMillis = 50
const sweepMillis = 1000
/** A node may be evicted for a moment; after this many checks in a row, its sockets are closed. */
const evictionCheckMillis = 500
const evictionChecks = 4

const decodeAuth = Schema.decodeUnknownResult(AuthFrame)

const iso = (millis: number) => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** Counts the anonymous sockets of each address. */
class AnonymousCount {
  readonly #byAddress = new Map<string, number>()

  /** Counts one more; false when the address has too many. */
  take({ address }: RealtimeSocket): boolean {
    const open = this.#byAddress.get(address) ?? 0
    if (open >= limits.anonymousPerAddress) return false
    this.#byAddress.set(address, open + 1)
    return true
  }

  release({ address }: RealtimeSocket): void {
    const open = this.#byAddress.get(address) ?? 0
    if (open <= 1) this.#byAddress.delete(address)
    else this.#byAddress.set(address, open - 1)
  }
}

/** Checks the first frame, and opens the connection of its player or listener. */
const admitSocket = Effect.fnUntraced(function* (
  anonymous: AnonymousCount,
  socket: RealtimeSocket,
  members: FrameMembers
) {
  const hub = yield* Hub
  const frame = decodeAuth(members)
  if (Result.isFailure(frame)) return yield* new Unauthorized()
  const { environment, player } = yield* admit({
    key: frame.success.key,
    token: frame.success.token,
    origin: socket.origin,
    anonymous: frame.success.anon === true
  })
  const { environmentId } = environment
  socket.setFeatures(yield* enabledFeatures(environmentId))
  const opened = player === undefined ? undefined : yield* openConnection(player, socket)
  const connectionId = opened?.connection.connectionId ?? (yield* newId.connection)
  const event = yield* welcome({
    connectionId,
    player,
    tokenExpiresAt: player === undefined ? null : iso(player.expiresAt),
    seat: opened?.seat ?? null
  })
  const admission: Admission = {
    environmentId,
    player,
    connection: opened?.connection,
    seat: opened?.seat ?? null,
    listener: undefined,
    welcome: Frame.of(event)
  }
  if (player !== undefined) return admission
  if (!anonymous.take(socket)) {
    return yield* new RateLimited({ details: { retryAfterSeconds: 60 } })
  }
  const listener = new Listener({
    connectionId,
    environmentId,
    sink: socket,
    run: hub.run,
    onClosed: () => anonymous.release(socket)
  })
  return { ...admission, listener }
})

/** Checks a new token for an open socket, which must be of the same player. */
const renewSocket = Effect.fnUntraced(function* (admission: Admission, members: FrameMembers) {
  const tokens = yield* AccessTokens
  const { connection, player: before } = admission
  const frame = decodeAuth(members)
  if (before === undefined || connection === undefined || Result.isFailure(frame)) {
    return yield* new Unauthorized()
  }
  const player = yield* tokens.verify(frame.success.token ?? "", before.environmentId)
  if (player.playerId !== before.playerId) return yield* new Unauthorized()
  connection.renewSession(yield* sessionNow(player))
  const event = yield* welcome({
    connectionId: connection.connectionId,
    player,
    tokenExpiresAt: iso(player.expiresAt),
    seat: connection.reservations.current.kind === "none" ? admission.seat : null
  })
  const renewed: Admission = { ...admission, player, welcome: Frame.of(event) }
  return renewed
})

/** Monotonic counters of sockets. */
export class SocketStats {
  /** Upgrades that were accepted. */
  accepted = 0
  /** Upgrades that were refused: the node is full, or drains. */
  refused = 0
  /** First frames that were admitted. */
  admitted = 0
  /** Closed sockets by the code of this side; undefined when the client closed, or the link broke. */
  readonly closed = new Map<CloseCode | undefined, number>()

  close(code: CloseCode | undefined): void {
    this.closed.set(code, (this.closed.get(code) ?? 0) + 1)
  }
}

/** The sockets of this node. */
export class Gateway extends Context.Service<
  Gateway,
  {
    readonly sockets: Set<RealtimeSocket>
    readonly socketStats: SocketStats
    readonly frameStats: FrameStats
    readonly writeStats: WriteStats
  }
>()("server/gateway/gateway/Gateway") {
  static readonly layer = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const sockets = new Set<RealtimeSocket>()
      /** Sockets whose close the client has not confirmed yet. */
      const closing = new Set<RealtimeSocket>()
      const socketStats = new SocketStats()
      const gateway = yield* makeSocketGateway(sockets, closing, socketStats)
      const clock = yield* Clock.Clock
      yield* acceptUpgrades(sockets, gateway, socketStats)
      yield* Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        for (const socket of sockets) socket.sweep(now)
        for (const socket of closing) socket.sweep(now)
      }).pipe(Effect.repeat(Schedule.spaced(sweepMillis)), Effect.forkScoped)
      yield* followConfig(sockets)
      yield* followCluster(sockets)
      const { frameStats, writeStats } = gateway
      return Gateway.of({ sockets, socketStats, frameStats, writeStats })
    })
  )
}

const makeSocketGateway = Effect.fnUntraced(function* (
  sockets: Set<RealtimeSocket>,
  closing: Set<RealtimeSocket>,
  socketStats: SocketStats
) {
  const hub = yield* Hub
  const handlers = yield* Frames
  const listenerHandlers = yield* ListenerFrames
  const clock = yield* Clock.Clock
  const services = yield* Effect.context<AdmissionServices>()
  const anonymous = new AnonymousCount()
  const asTrace = traced(services, "auth")
  const handle = <A>(effect: Effect.Effect<A, CodedError, AdmissionServices>) =>
    asTrace(Effect.provideContext(effect, services)).pipe(
      Effect.tapDefect((defect) => Effect.logError("Failed to admit a socket", defect)),
      Effect.catchDefect(() => Effect.fail<CodedError>(new InvalidKey()))
    )
  const gateway: SocketGateway = {
    scheduler: hub.scheduler,
    writeStats: new WriteStats(),
    frameStats: new FrameStats(),
    handlers,
    listenerHandlers,
    now: () => clock.currentTimeMillisUnsafe(),
    run: hub.run,
    admit: (socket, frame) =>
      Effect.tap(handle(admitSocket(anonymous, socket, frame)), () =>
        Effect.sync(() => void (socketStats.admitted += 1))
      ),
    renew: (admission, frame) => handle(renewSocket(admission, frame)),
    onClosing: (socket) => {
      if (sockets.delete(socket)) {
        closing.add(socket)
        socketStats.close(socket.closedWith)
      }
      const connection = socket.admission?.connection
      if (connection !== undefined) hub.connections.delete(connection)
    },
    onClosed: (socket) => void closing.delete(socket)
  }
  return gateway
})

const acceptUpgrades = Effect.fnUntraced(function* (
  sockets: Set<RealtimeSocket>,
  gateway: SocketGateway,
  socketStats: SocketStats
) {
  const http = yield* HttpServerHandle
  const { trustedProxies } = yield* Settings
  let draining = false
  const wss = new WebSocketServer({ noServer: true, clientTracking: false, ...webSocketBounds })
  const accept = (request: IncomingMessage, stream: Duplex, head: Buffer): void => {
    if (draining || !http.hasRoom()) {
      socketStats.refused += 1
      return refuse(stream, 503, "unavailable", "Try another node.")
    }
    wss.handleUpgrade(request, stream, head, (ws) => {
      const { origin } = request.headers
      const address = addressOf(request, trustedProxies)
      sockets.add(new RealtimeSocket({ ws, stream, origin, address, gateway }))
      socketStats.accepted += 1
    })
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => http.onUpgrade(paths.realtime, accept)),
    () =>
      Effect.gen(function* () {
        draining = true
        yield* closeAll(sockets)
        yield* Effect.sleep(drainStepMillis).pipe(
          Effect.repeat({ until: () => sockets.size === 0 }),
          Effect.timeoutOption(drainMillis),
          Effect.when(Effect.sync(() => sockets.size > 0))
        )
        wss.close()
      })
  )
})

const closeAll = (sockets: ReadonlySet<RealtimeSocket>) =>
  forEachInSlices(sockets, (socket) => socket.close(closeCodes.draining, "draining"))

/** Closes the sockets of an evicted node: their players find their rooms again on any other. */
const followCluster = Effect.fnUntraced(function* (sockets: Set<RealtimeSocket>) {
  const { isSelfEvicted } = yield* Membership
  let checks = 0
  yield* Effect.suspend(() => {
    checks = isSelfEvicted() ? checks + 1 : 0
    return checks < evictionChecks ? Effect.void : closeAll(sockets)
  }).pipe(Effect.repeat(Schedule.spaced(evictionCheckMillis)), Effect.forkScoped)
})

/** Applies config pushes to the features of open sockets. */
const followConfig = Effect.fnUntraced(function* (sockets: Set<RealtimeSocket>) {
  const configs = yield* Configs
  yield* configs.changes.pipe(
    Stream.runForEachArray((environmentIds) =>
      Effect.flatMap(featuresOf(environmentIds), (features) =>
        forEachInSlices(sockets, (socket) => {
          const enabled = features.get(socket.admission?.environmentId ?? "")
          if (enabled !== undefined) socket.setFeatures(enabled)
        })
      )
    ),
    Effect.forkScoped
  )
})
