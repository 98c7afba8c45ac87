/**
 * Admission of connections: checks the credentials of the first frame in order (key, origin, token,
 * feature) and attaches the connection to its player's session. The same for WebSockets and native RPC.
 */
import { Clock, DateTime, Effect, Schedule, Schema } from "effect"
import type { SecureRandom } from "effect/crypto"
import type { KeyCaller, PlayerCaller } from "#rpc/auth"
import { PlayerRequired, Unauthorized, Unavailable } from "#rpc/errors/codes"
import type { FeatureErrors } from "#rpc/config-document/feature-errors"
import { type EnvironmentId, newId, PlayerId } from "#rpc/ids"
import type { HeldSeat, Welcome } from "#rpc/realtime"
import { logFailure } from "#sql/database"
import { sha256 } from "#server/platform/secrets"
import { strangers, Tenant } from "#server/platform/tenant"
import { Usage } from "#server/platform/usage"
import type { WaitingPlayers } from "#server/cluster/waiting-players"
import { isUnavailable } from "#server/links/entity-call"
import { socketFeatureError } from "./frames.ts"
import { Hub } from "#server/links/hub"
import { PlayerConnection } from "#server/links/player-connection"
import { ReservationManager } from "#server/links/reservations"
import type { FrameSink } from "#server/links/subscriber"
import { Blocks } from "#server/features/blocks/service"
import { Configs } from "#server/features/config/service"
import { Origins } from "#server/features/hosting/origins"
import { PlayerStatusCache } from "#server/features/players/status-cache"
import { Environments } from "#server/features/projects/environments"
import { AccessTokens } from "#server/features/sessions/tokens"
import { AcceptDelay } from "#server/http/accept-delay"
import { socketLimits } from "#server/platform/socket-limits"
import { applyAgeBand, applyBlocks } from "./age-restrictions.ts"

/** The credentials of a connection. */
export interface Credentials {
  readonly key: string | undefined
  readonly token: string | undefined
  /** Player for whom a secret key acts; a publishable key cannot. */
  readonly actsFor?: string | undefined
  readonly origin: string | undefined
  readonly anonymous: boolean
}

/**
 * Fails as `unavailable` after a fault, such as a database that does not respond. It says nothing about the
 * credentials: with an error of these, the client would sign its player out.
 */
export const unavailableAfterFault = <A, E, R>(
  admission: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Unavailable, R> =>
  Effect.catchDefect(admission, (defect) =>
    Effect.andThen(logFailure("Failed to admit a socket", defect), Effect.fail(new Unavailable()))
  )

/** The services that admission needs. */
export type AdmissionServices =
  | AcceptDelay
  | AccessTokens
  | Blocks
  | Configs
  | Environments
  | Hub
  | Origins
  | SecureRandom.SecureRandom
  | PlayerStatusCache
  | Usage
  | WaitingPlayers

/** Errors of the features that an environment cannot use. */
export const featureErrorsOf = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
  const configs = yield* Configs
  return (yield* configs.current(environmentId)).featureErrors
})

/** The same of several environments, by id. */
export const featureErrorsById = (environmentIds: ReadonlyArray<EnvironmentId>) =>
  Effect.map(
    Effect.forEach(environmentIds, featureErrorsOf),
    (all): ReadonlyMap<string, FeatureErrors> =>
      new Map(all.map((errors, index) => [environmentIds[index] ?? "", errors]))
  )

/** Time since which a connection waits whose credentials arrive now; before, it waited to be accepted. */
export const arrival = Effect.gen(function* () {
  const { millis } = yield* AcceptDelay
  return (yield* Clock.currentTimeMillis) - Math.round(millis())
})

/** The player of a publishable key's token, or the one a secret key acts for. */
const playerOf = Effect.fnUntraced(function* (environment: KeyCaller, credentials: Credentials) {
  const tokens = yield* AccessTokens
  const { environmentId } = environment
  if (credentials.anonymous) return undefined
  if (environment.keyKind === "publishable") {
    return yield* tokens.verify(credentials.token ?? "", environmentId)
  }
  if (!Schema.is(PlayerId)(credentials.actsFor)) return yield* new PlayerRequired()
  const player: PlayerCaller = {
    playerId: credentials.actsFor,
    environmentId,
    sessionId: undefined,
    isGuest: false,
    expiresAt: Number.POSITIVE_INFINITY
  }
  return player
})

/** Checks the credentials; returns the environment and the player, if any. */
export const admit = Effect.fnUntraced(function* (credentials: Credentials) {
  const environments = yield* Environments
  // A server acts for players over /v1/rpc only.
  const mayUseSecretKey = "actsFor" in credentials
  const environment = yield* environments
    .findByKey(credentials.key ?? "", mayUseSecretKey ? undefined : ["publishable"])
    .pipe(Effect.provideService(Tenant, strangers))
  const { environmentId } = environment
  return yield* Effect.provideService(admitTo(environment, credentials), Tenant, environmentId)
})

/** The checks that need the environment of the key. */
const admitTo = Effect.fnUntraced(function* (environment: KeyCaller, credentials: Credentials) {
  const origins = yield* Origins
  const usage = yield* Usage
  yield* origins.check(environment, credentials.origin)
  const player = yield* playerOf(environment, credentials)
  if (player !== undefined) yield* usage.playerSeen(environment.environmentId, player.playerId)
  const error = socketFeatureError(yield* featureErrorsOf(environment.environmentId))
  if (error !== undefined) return yield* error
  return { environment, keyHash: sha256(credentials.key ?? ""), player }
})

/** The seat that the session remembers, if the room still keeps it. */
const keptSeat = Effect.fnUntraced(
  function* ({ reservations }: PlayerConnection, roomId: string) {
    const seat = yield* reservations.peek(roomId)
    if (seat === null) yield* reservations.release({ kind: "seat", roomId })
    return seat
  },
  Effect.catch(() => Effect.succeed(null))
)

/** Retries while the session is moving; the gateway bounds the whole admission. */
const attachRetryMillis = 50

/** Attaches the connection to its player's session; returns the seat that is kept, if any. */
const attach = Effect.fnUntraced(function* (connection: PlayerConnection) {
  const hub = yield* Hub
  const { environmentId, playerId } = connection
  const connect = Effect.suspend(() =>
    hub.sessions.open(environmentId, playerId).connect(connection)
  )
  // The schedule is made only for a session that moves.
  const { roomId } = yield* connect.pipe(
    Effect.catchIf(isUnavailable, () =>
      Effect.delay(
        Effect.retry(connect, {
          while: isUnavailable,
          schedule: Schedule.spaced(attachRetryMillis)
        }),
        attachRetryMillis
      )
    ),
    Effect.mapError(() => new Unauthorized())
  )
  return roomId === null ? null : yield* keptSeat(connection, roomId)
})

/** Returns the status of a player who may connect: it exists and is not banned. */
const statusOf = Effect.fnUntraced(function* ({ environmentId, playerId }: PlayerCaller) {
  const statuses = yield* PlayerStatusCache
  const status = yield* statuses.get(environmentId, playerId)
  if (status === undefined) return yield* new Unauthorized()
  if (status.banned !== undefined) return yield* status.banned
  return status
})

/** The session of a player whose token was verified just now. */
export const sessionNow = ({ sessionId: id }: PlayerCaller) =>
  Effect.map(DateTime.now, (since) => (id === undefined ? undefined : { id, since }))

const makeConnection = Effect.fnUntraced(function* (player: PlayerCaller, sink: FrameSink) {
  const hub = yield* Hub
  const connectionId = yield* newId.connection
  const { environmentId, playerId } = player
  const { displayName, lastBan } = yield* statusOf(player)
  const reservations = new ReservationManager({
    connectionId,
    playerId,
    calls: {
      session: (command) => hub.sessions.open(environmentId, playerId).requestWithDeadline(command),
      peek: (roomId) => hub.peekSeat(roomId, playerId)
    }
  })
  return new PlayerConnection({
    player: {
      connectionId,
      environmentId,
      playerId,
      session: yield* sessionNow(player),
      displayName,
      lastBanId: lastBan?.details.sanctionId
    },
    sink,
    reservations,
    run: (effect) => hub.run(Effect.provideService(effect, Tenant, environmentId)),
    onClosed: (connection) => hub.sessions.open(environmentId, playerId).disconnect(connection)
  })
})

/** Opens the connection of a player; returns it with the seat that is kept, if any. */
export const openConnection = Effect.fnUntraced(
  function* (player: PlayerCaller, sink: FrameSink) {
    const configs = yield* Configs
    const hub = yield* Hub
    const connection = yield* makeConnection(player, sink)
    const { environmentId } = connection
    hub.connections.add(connection)
    // From here on a ban finds the connection. Reading the status again finds one that came between the
    // first read and now; the cache makes that cheap.
    const admitted = Effect.gen(function* () {
      const { declaredAgeBand, displayName } = yield* statusOf(player)
      connection.rename(displayName)
      const { audience } = (yield* configs.current(environmentId)).config
      applyAgeBand(hub, connection, audience, declaredAgeBand)
      yield* applyBlocks(hub, connection)
      return yield* attach(connection)
    })
    const seat = yield* Effect.onError(admitted, () =>
      Effect.sync(() => {
        hub.connections.delete(connection)
        connection.close("lost")
      })
    )
    return { connection, seat }
  },
  (opened, { environmentId }) => Effect.provideService(opened, Tenant, environmentId)
)

/** The reply to `auth`. */
export const welcome = Effect.fnUntraced(function* (options: {
  readonly connectionId: string
  readonly player: PlayerCaller | undefined
  readonly tokenExpiresAt: string | null
  readonly seat: HeldSeat | null
}) {
  const event: Welcome = {
    t: "welcome",
    connectionId: options.connectionId,
    playerId: options.player?.playerId ?? null,
    serverTime: yield* Clock.currentTimeMillis,
    heartbeatSeconds: socketLimits.heartbeatSeconds,
    tokenExpiresAt: options.tokenExpiresAt,
    rooms: options.seat === null ? [] : [options.seat]
  }
  return event
})
