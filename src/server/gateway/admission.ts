/**
 * Who may come in: the checks of the first frame, in their order (key, origin, token, feature), and
 * the place of the connection with the player's session. The same for both doors.
 */
import { Clock, DateTime, Effect, Schedule, Schema } from "effect"
import type { SecureRandom } from "effect/crypto"
import type { EnvironmentCaller, KeyCaller, PlayerCaller } from "#rpc/auth"
import { FeatureDisabled, InvalidKey, PlayerRequired, Unauthorized } from "#rpc/errors/codes"
import { newId, PlayerId } from "#rpc/ids"
import { socket as limits } from "#rpc/limits"
import type { HeldSeat, Welcome } from "#rpc/realtime"
import { Usage } from "#server/platform/usage"
import { Hub } from "#server/links/hub"
import { type FrameSink, PlayerConnection } from "#server/links/player-connection"
import { peek, release } from "#server/links/reservations"
import { Configs } from "#server/features/config/service"
import { PlayerStatusCache } from "#server/features/players/status-cache"
import { Environments } from "#server/features/projects/environments"
import { AccessTokens } from "#server/features/sessions/tokens"
import { Origins } from "#server/http/origins"
import type { EnabledFeatures } from "./enabled-features.ts"
import { applyAgeBand } from "./player-changes.ts"

/** What a connection shows of itself. */
export interface Credentials {
  readonly key: string | undefined
  readonly token: string | undefined
  /** The player a secret key acts for; a publishable key cannot. */
  readonly actsFor?: string | undefined
  readonly origin: string | undefined
  readonly anonymous: boolean
}

/** What admission stands on. */
export type AdmissionServices =
  | AccessTokens
  | Configs
  | Environments
  | Hub
  | Origins
  | SecureRandom.SecureRandom
  | PlayerStatusCache
  | Usage

/** Is there anything for a socket to do in this environment? */
export const offersRealtime = Effect.fnUntraced(function* (
  environmentId: EnvironmentCaller["environmentId"]
) {
  const configs = yield* Configs
  const { features } = (yield* configs.current(environmentId)).config
  const { multiplayer: rooms, realtimeChannels: channels } = features
  const offers: EnabledFeatures = { rooms, channels, any: rooms || channels }
  return offers
})

/** The player behind a publishable key's token, or the one a secret key acts for. */
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

/** Checks the credentials; answers who it is. Without a player the connection is anonymous. */
export const admit = Effect.fnUntraced(function* (credentials: Credentials) {
  const environments = yield* Environments
  const origins = yield* Origins
  const usage = yield* Usage
  const environment = yield* environments.findByKey(credentials.key ?? "")
  const servers = "actsFor" in credentials
  if (environment.keyKind === "secret" && !servers) return yield* new InvalidKey()
  yield* origins.check(environment, credentials.origin)
  const player = yield* playerOf(environment, credentials)
  if (player !== undefined) yield* usage.playerSeen(environment.environmentId, player.playerId)
  const offers = yield* offersRealtime(environment.environmentId)
  if (!offers.any) {
    const details = { feature: "multiplayer", configPath: "features.multiplayer" }
    return yield* new FeatureDisabled({ details })
  }
  return { environment, player }
})

/** The seat that the session remembers, if the room still keeps it. */
const heldSeat = Effect.fnUntraced(
  function* (connection: PlayerConnection, roomId: string) {
    const seat = yield* peek(connection, roomId)
    if (seat === null) yield* release(connection, { kind: "seat", roomId })
    return seat
  },
  Effect.catch(() => Effect.succeed(null))
)

const reattach = Schedule.spaced(50)

/** The session takes the connection in, wherever it lives; answers the room of a seat that is kept. */
const attach = Effect.fnUntraced(function* (connection: PlayerConnection) {
  const hub = yield* Hub
  const { environmentId, playerId } = connection
  const { roomId } = yield* Effect.suspend(() =>
    hub.session(environmentId, playerId).hold(connection)
  ).pipe(
    Effect.retry({ while: (error) => error._tag === "unavailable", schedule: reattach }),
    Effect.mapError(() => new Unauthorized())
  )
  return roomId
})

/** The player as the service treats it, unless it is refused. */
const standingOf = Effect.fnUntraced(function* ({ environmentId, playerId }: PlayerCaller) {
  const standings = yield* PlayerStatusCache
  const standing = yield* standings.get(environmentId, playerId)
  if (standing === undefined) return yield* new Unauthorized()
  if (standing.banned !== undefined) return yield* standing.banned
  return standing
})

/** The session of a player who has shown its token just now. */
export const sessionNow = ({ sessionId: id }: PlayerCaller) =>
  Effect.map(DateTime.now, (since) => (id === undefined ? undefined : { id, since }))

/** Opens the connection of a player: the session knows it, and the client is welcome. */
export const openConnection = Effect.fnUntraced(function* (player: PlayerCaller, door: FrameSink) {
  const configs = yield* Configs
  const hub = yield* Hub
  const connectionId = yield* newId.connection
  const { environmentId, playerId } = player
  const { displayName } = yield* standingOf(player)
  const connection = new PlayerConnection({
    player: {
      connectionId,
      environmentId,
      playerId,
      session: yield* sessionNow(player),
      displayName
    },
    door,
    run: hub.run,
    released: (of, roomId) =>
      Effect.provideService(release(of, { kind: "seat", roomId }), Hub, hub),
    ended: (of) => hub.session(environmentId, playerId).drop(of)
  })
  hub.connections.set(connectionId, connection)
  // Known by now to whoever follows changes: a ban from here on finds the connection, and one that
  // came since the look-up is found by looking again, which costs nothing when there was none.
  const admitted = Effect.gen(function* () {
    const { declaredAgeBand } = yield* standingOf(player)
    const { audience } = (yield* configs.current(environmentId)).config
    applyAgeBand(hub, connection, audience, declaredAgeBand)
    return yield* findSeat(connection)
  })
  const seat = yield* Effect.onError(admitted, () =>
    Effect.sync(() => {
      hub.connections.delete(connectionId)
      connection.close(false)
    })
  )
  return { connection, seat }
})

/** Attaches the connection and looks for a seat that is kept. */
const findSeat = Effect.fnUntraced(function* (connection: PlayerConnection) {
  const roomId = yield* attach(connection)
  return roomId === null ? null : yield* heldSeat(connection, roomId)
})

/** The answer to `auth`. */
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
    heartbeatSeconds: limits.heartbeatSeconds,
    tokenExpiresAt: options.tokenExpiresAt,
    rooms: options.seat === null ? [] : [options.seat]
  }
  return event
})
