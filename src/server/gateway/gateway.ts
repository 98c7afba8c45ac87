/**
 * The door `/v1/realtime`: takes WebSocket upgrades, admits sockets, keeps their time, and closes
 * them all with 1012 when the node drains (their seats are kept).
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
import { Frame } from "#server/platform/outbox"
import { Settings } from "#server/platform/settings/settings"
import { Membership } from "#server/cluster/membership"
import { traced } from "#server/links/answering"
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
  offersRealtime,
  openConnection,
  sessionNow,
  welcome
} from "./admission.ts"
import { Frames } from "./frame-handlers.ts"
import { type Admitted, FrameStats, RealtimeSocket, type SocketGateway } from "./socket.ts"

const drainMillis = 1500
const drainStepMillis = 50
const sweepMillis = 1000
/** A node is out for a moment now and then; as many looks in a row, and it is cut off. */
const outMillis = 500
const outLooks = 4

const decodeAuth = Schema.decodeUnknownResult(AuthFrame)

const iso = (millis: number) => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** How many sockets without a player each address has open. */
class AnonymousCount {
  readonly #byAddress = new Map<string, number>()

  /** Makes room for one more, if there is. */
  take({ address }: RealtimeSocket): boolean {
    const open = this.#byAddress.get(address) ?? 0
    if (open >= limits.anonymousPerAddress) return false
    this.#byAddress.set(address, open + 1)
    return true
  }

  free({ address }: RealtimeSocket): void {
    const open = this.#byAddress.get(address) ?? 0
    if (open <= 1) this.#byAddress.delete(address)
    else this.#byAddress.set(address, open - 1)
  }
}

/** The first frame, checked; on success the socket has its connection and its welcome. */
const admitSocket = Effect.fnUntraced(function* (
  anonymous: AnonymousCount,
  socket: RealtimeSocket,
  members: Readonly<Record<string, unknown>>
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
  socket.offers = yield* offersRealtime(environmentId)
  const opened = player === undefined ? undefined : yield* openConnection(player, socket)
  const connectionId = opened?.connection.connectionId ?? (yield* newId.connection)
  const event = yield* welcome({
    connectionId,
    player,
    tokenExpiresAt: player === undefined ? null : iso(player.expiresAt),
    seat: opened?.seat ?? null
  })
  const admitted: Admitted = {
    environmentId,
    player,
    connection: opened?.connection,
    seat: opened?.seat ?? null,
    listener: undefined,
    welcome: Frame.of(event)
  }
  if (player !== undefined) return admitted
  if (!anonymous.take(socket)) {
    return yield* new RateLimited({ details: { retryAfterSeconds: 60 } })
  }
  const listener = new Listener({
    connectionId,
    environmentId,
    door: socket,
    run: hub.run,
    closed: () => anonymous.free(socket)
  })
  return { ...admitted, listener }
})

/** A new token for an open socket, of the same player. */
const renewSocket = Effect.fnUntraced(function* (
  admitted: Admitted,
  members: Readonly<Record<string, unknown>>
) {
  const tokens = yield* AccessTokens
  const { connection, player: before } = admitted
  const frame = decodeAuth(members)
  if (before === undefined || connection === undefined || Result.isFailure(frame)) {
    return yield* new Unauthorized()
  }
  const player = yield* tokens.verify(frame.success.token ?? "", before.environmentId)
  if (player.playerId !== before.playerId) return yield* new Unauthorized()
  connection.session = yield* sessionNow(player)
  const event = yield* welcome({
    connectionId: connection.connectionId,
    player,
    tokenExpiresAt: iso(player.expiresAt),
    seat: connection.reservation.kind === "none" ? admitted.seat : null
  })
  const renewed: Admitted = { ...admitted, player, welcome: Frame.of(event) }
  return renewed
})

/** What has become of sockets, in numbers that only grow. */
export class SocketStats {
  /** Upgrades that were answered. */
  accepted = 0
  /** Upgrades that were not, the node being full or on its way out. */
  refused = 0
  /** First frames that were good. */
  admitted = 0
  /** Sockets that are over, by our close code; undefined when the other side ended them. */
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
    readonly book: SocketStats
    readonly heard: FrameStats
  }
>()("server/gateway/gateway/Gateway") {
  static readonly layer = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const sockets = new Set<RealtimeSocket>()
      /** Those that the other side has not closed yet. */
      const closing = new Set<RealtimeSocket>()
      const book = new SocketStats()
      const gateway = yield* makeSocketGateway(sockets, closing, book)
      const clock = yield* Clock.Clock
      yield* acceptUpgrades(sockets, gateway, book)
      yield* Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        for (const socket of sockets) socket.sweep(now)
        for (const socket of closing) socket.sweep(now)
      }).pipe(Effect.repeat(Schedule.spaced(sweepMillis)), Effect.forkScoped)
      yield* followConfig(sockets)
      yield* followCluster(sockets)
      return Gateway.of({ sockets, book, heard: gateway.heard })
    })
  )
}

const makeSocketGateway = Effect.fnUntraced(function* (
  sockets: Set<RealtimeSocket>,
  closing: Set<RealtimeSocket>,
  book: SocketStats
) {
  const hub = yield* Hub
  const handlers = yield* Frames
  const listenerHandlers = yield* ListenerFrames
  const clock = yield* Clock.Clock
  const services = yield* Effect.context<AdmissionServices>()
  const anonymous = new AnonymousCount()
  const asTrace = traced(services, "auth")
  const plain = <A>(effect: Effect.Effect<A, CodedError, AdmissionServices>) =>
    asTrace(Effect.provideContext(effect, services)).pipe(
      Effect.tapDefect((defect) => Effect.logError("A socket could not be admitted", defect)),
      Effect.catchDefect(() => Effect.fail<CodedError>(new InvalidKey()))
    )
  const gateway: SocketGateway = {
    turn: hub.turn,
    heard: new FrameStats(),
    handlers,
    listenerHandlers,
    now: () => clock.currentTimeMillisUnsafe(),
    run: hub.run,
    admit: (socket, frame) =>
      Effect.tap(plain(admitSocket(anonymous, socket, frame)), () =>
        Effect.sync(() => void (book.admitted += 1))
      ),
    renew: (admitted, frame) => plain(renewSocket(admitted, frame)),
    gone: (socket) => {
      if (sockets.delete(socket)) {
        closing.add(socket)
        book.close(socket.closedWith)
      }
      const connection = socket.admitted?.connection
      if (connection !== undefined) hub.connections.delete(connection.connectionId)
    },
    closed: (socket) => void closing.delete(socket)
  }
  return gateway
})

const acceptUpgrades = Effect.fnUntraced(function* (
  sockets: Set<RealtimeSocket>,
  gateway: SocketGateway,
  book: SocketStats
) {
  const http = yield* HttpServerHandle
  const { trustedProxies } = yield* Settings
  let draining = false
  const wss = new WebSocketServer({ noServer: true, clientTracking: false, ...webSocketBounds })
  const accept = (request: IncomingMessage, stream: Duplex, head: Buffer): void => {
    if (draining || !http.hasRoom()) {
      book.refused += 1
      return refuse(stream, 503, "unavailable", "Try another node.")
    }
    wss.handleUpgrade(request, stream, head, (ws) => {
      const { origin } = request.headers
      const address = addressOf(request, trustedProxies)
      sockets.add(new RealtimeSocket({ ws, stream, origin, address, gateway }))
      book.accepted += 1
    })
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => http.onUpgrade(paths.realtime, accept)),
    () =>
      Effect.gen(function* () {
        draining = true
        for (const socket of sockets) socket.close(closeCodes.draining, "draining")
        yield* Effect.sleep(drainStepMillis).pipe(
          Effect.repeat({ until: () => sockets.size === 0 }),
          Effect.timeoutOption(drainMillis),
          Effect.when(Effect.sync(() => sockets.size > 0))
        )
        wss.close()
      })
  )
})

/** Players of a node that others cannot reach find their rooms again from any other. */
const followCluster = Effect.fnUntraced(function* (sockets: Set<RealtimeSocket>) {
  const { isSelfEvicted } = yield* Membership
  let looks = 0
  yield* Effect.sync(() => {
    looks = isSelfEvicted() ? looks + 1 : 0
    if (looks < outLooks) return
    for (const socket of sockets) socket.close(closeCodes.draining, "draining")
  }).pipe(Effect.repeat(Schedule.spaced(outMillis)), Effect.forkScoped)
})

/** A config push may close sockets or take rooms away from them. */
const followConfig = Effect.fnUntraced(function* (sockets: Set<RealtimeSocket>) {
  const configs = yield* Configs
  yield* configs.changes.pipe(
    Stream.runForEach((environmentId) =>
      Effect.map(offersRealtime(environmentId), (offers) => {
        for (const socket of sockets) {
          if (socket.admitted?.environmentId !== environmentId) continue
          socket.offers = offers
          if (!offers.any) socket.close(closeCodes.forbidden, "feature_disabled")
        }
      })
    ),
    Effect.forkScoped
  )
})
