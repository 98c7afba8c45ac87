/** The endpoint `/v1/realtime`: checks the first frame of its sockets, and their new tokens. */
import { Clock, DateTime, Effect, Layer, Result, Schema } from "effect"
import { type CodedError, RateLimited, Unauthorized } from "#rpc/errors/codes"
import { newId } from "#rpc/ids"
import { paths } from "#rpc/paths"
import { AuthFrame } from "#rpc/realtime"
import { waitingSince, WaitingPlayers } from "#server/cluster/waiting-players"
import { FlushTimers } from "#server/platform/flush"
import { Frame } from "#server/platform/socket-outbox"
import { Tenant } from "#server/platform/tenant"
import { traced, withServices } from "#server/links/frame-effects"
import type { FrameMembers } from "./frames.ts"
import { Hub } from "#server/links/hub"
import { Listener } from "#server/links/listener"
import { ListenerFrames } from "#server/features/channels/frames"
import { AccessTokens } from "#server/features/sessions/tokens"
import { socketLimits } from "#server/platform/socket-limits"
import {
  admit,
  type AdmissionServices,
  arrival,
  featureErrorsOf,
  openConnection,
  sessionNow,
  unavailableAfterFault,
  welcome
} from "./admission.ts"
import { AdmissionQueue } from "./admission-queue.ts"
import { Frames } from "./frame-handlers.ts"
import { Gateway } from "./gateway.ts"
import {
  type Admitted,
  type RealtimeAdmission,
  type RealtimeEndpoint,
  RealtimeSocket
} from "./socket.ts"

const decodeAuth = Schema.decodeUnknownResult(AuthFrame)

const iso = (millis: number) => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** Counts the anonymous sockets of each address. */
class AnonymousCount {
  readonly #byAddress = new Map<string, number>()

  /** Counts one more; false when the address has too many. */
  take({ address }: RealtimeSocket): boolean {
    const open = this.#byAddress.get(address) ?? 0
    if (open >= socketLimits.anonymousPerAddress) return false
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
  { anonymous, queue }: { readonly anonymous: AnonymousCount; readonly queue: AdmissionQueue },
  socket: RealtimeSocket,
  members: FrameMembers
) {
  const arrivedAt = yield* arrival
  const frame = decodeAuth(members)
  if (Result.isFailure(frame)) return yield* new Unauthorized()
  const { environment, keyHash, player } = yield* admit({
    key: frame.success.key,
    token: frame.success.token,
    origin: socket.origin,
    anonymous: frame.success.anon === true
  })
  const { environmentId } = environment
  socket.setFeatureErrors(yield* featureErrorsOf(environmentId))
  const turn = queue.await(environmentId)
  const opened = yield* player === undefined
    ? Effect.as(turn, undefined)
    : Effect.andThen(turn, openConnection(player, socket)).pipe(
        waitingSince(environmentId, arrivedAt)
      )
  const connectionId = opened?.connection.connectionId ?? (yield* newId.connection)
  const event = yield* welcome({
    connectionId,
    player,
    tokenExpiresAt: player === undefined ? null : iso(player.expiresAt),
    seat: opened?.seat ?? null
  })
  const admission: RealtimeAdmission = {
    environmentId,
    keyHash,
    player,
    connection: opened?.connection,
    seat: opened?.seat ?? null,
    listener: undefined
  }
  const admitted: Admitted = { admission, welcome: Frame.of(event) }
  if (player !== undefined) return admitted
  if (!anonymous.take(socket)) {
    return yield* new RateLimited({ details: { retryAfterSeconds: 60 } })
  }
  const hub = yield* Hub
  const listener = new Listener({
    connectionId,
    environmentId,
    sink: socket,
    run: (effect) => hub.run(Effect.provideService(effect, Tenant, environmentId)),
    onClosed: () => anonymous.release(socket)
  })
  return { ...admitted, admission: { ...admission, listener } }
})

/** Checks a new token for an open socket, which must be of the same player. */
const renewSocket = Effect.fnUntraced(function* (
  admission: RealtimeAdmission,
  members: FrameMembers
) {
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
  const renewed: Admitted = { admission: { ...admission, player }, welcome: Frame.of(event) }
  return renewed
})

/** Serves `/v1/realtime`. */
export const RealtimeEndpointLive = Layer.effectDiscard(
  Effect.gen(function* () {
    const gateway = yield* Gateway
    const handlers = yield* Frames
    const listenerHandlers = yield* ListenerFrames
    const clock = yield* Clock.Clock
    const waiting = yield* WaitingPlayers
    const services = yield* Effect.context<AdmissionServices>()
    const { soon } = yield* FlushTimers
    const arrivals = { anonymous: new AnonymousCount(), queue: new AdmissionQueue(soon) }
    const asTrace = traced(services, "auth")
    const provide = withServices(services)
    const handle = <A>(effect: Effect.Effect<A, CodedError, AdmissionServices>) =>
      unavailableAfterFault(asTrace(provide(effect)))
    const endpoint: RealtimeEndpoint = {
      handlers,
      listenerHandlers,
      time: () => clock.currentTimeMillisUnsafe(),
      admit: (socket, frame) => handle(admitSocket(arrivals, socket, frame)),
      renew: (admission, frame) =>
        Effect.provideService(
          handle(renewSocket(admission, frame)),
          Tenant,
          admission.environmentId
        )
    }
    yield* gateway.serve(
      paths.realtime,
      (upgraded) => new RealtimeSocket(gateway.host, endpoint, upgraded)
    )
    waiting.serve()
    yield* Effect.addFinalizer(() => gateway.drain)
  })
)
