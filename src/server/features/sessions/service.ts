/**
 * Sessions (spec sections 4.1 and 5, decisions 3.1.7-8, 3.2.2-3). A session is a chain of refresh
 * tokens that descends from one sign-in, of which only the newest works.
 *
 * Within ten seconds of a rotation the token just replaced answers `refresh_race`: another tab was
 * faster. Presented later, or any older one: somebody has a copy, and the chain is revoked.
 */
import { Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import {
  InvalidRefreshToken,
  type PlayerBanned,
  type PlayerNotFound,
  RefreshRace,
  SessionRevoked
} from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId, SanctionId, SessionId } from "#rpc/ids"
import { sessions as limits } from "#rpc/limits"
import type { Session } from "#rpc/sessions"
import type { IdentityConflict } from "#sql/identities"
import { SanctionRepository } from "#sql/moderation"
import { SessionRepository } from "#sql/sessions"
import { sweepDaily } from "#server/platform/database"
import { Secrets } from "#server/platform/secrets"
import { playerStatusOf, PlayerStatusCache } from "../players/status-cache.ts"
import { type FirstSignIn, lifetime, makeCreateSession } from "./create.ts"
import { newRefreshToken, parseRefreshToken, type RefreshToken } from "./refresh-tokens.ts"

type RefreshError = InvalidRefreshToken | SessionRevoked | PlayerBanned | RefreshRace

const raceWindow = Duration.seconds(limits.refreshRaceSeconds)

/** A player who proves by a refresh token who it is. */
interface SessionOwner {
  readonly playerId: PlayerId
  readonly sessionId: SessionId
}

/** The same of a player whom a ban may have signed out. */
interface Appellant {
  readonly playerId: PlayerId
  readonly sanctionId: SanctionId | null
}

/** Signs players in, and keeps them so. */
export class Sessions extends Context.Service<
  Sessions,
  {
    /** A new guest player, signed in. */
    readonly createGuest: (
      environmentId: EnvironmentId,
      displayName: string | undefined
    ) => Effect.Effect<Session>
    /** A new player with a way to sign in, signed in. */
    readonly signUp: (
      environmentId: EnvironmentId,
      first: FirstSignIn
    ) => Effect.Effect<Session, IdentityConflict>
    /** A player signs in on one device more. */
    readonly signIn: (
      environmentId: EnvironmentId,
      playerId: PlayerId
    ) => Effect.Effect<Session, PlayerBanned | PlayerNotFound>
    /**
     * Holds the player until the transaction ends, if this session of it is open. An access token
     * outlives its session, but what makes another session of it must not.
     */
    readonly lockOpenSession: (
      environmentId: EnvironmentId,
      playerId: PlayerId,
      sessionId: string
    ) => Effect.Effect<void, SessionRevoked>
    /** Ends the sessions of a player, all but the one that is kept, and their sockets on all nodes. */
    readonly revokeAll: (
      environmentId: EnvironmentId,
      playerId: PlayerId,
      kept?: SessionId
    ) => Effect.Effect<void>
    /** Whose current token of an open session it is. */
    readonly authenticate: (
      environmentId: EnvironmentId,
      token: string
    ) => Effect.Effect<SessionOwner, InvalidRefreshToken | SessionRevoked>
    /** The next session of a refresh token's chain. */
    readonly refresh: (
      environmentId: EnvironmentId,
      token: string
    ) => Effect.Effect<Session, RefreshError>
    /** Ends the chain of a refresh token, if it is one, and its sockets. */
    readonly logout: (environmentId: EnvironmentId, token: string) => Effect.Effect<void>
    /** When a session was ended, if it was. */
    readonly revokedAt: (
      environmentId: EnvironmentId,
      sessionId: SessionId
    ) => Effect.Effect<DateTime.Utc | undefined>
    /** Whose current token it is, and the ban that revoked its session, if one did. */
    readonly authenticateAppellant: (
      environmentId: EnvironmentId,
      token: string
    ) => Effect.Effect<Appellant, InvalidRefreshToken | SessionRevoked>
    /** The chain that a token names, if this service issued it. */
    readonly sessionIdOf: (token: string) => SessionId | undefined
  }
>()("server/features/sessions/service/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      const rows = yield* SessionRepository
      const sanctions = yield* SanctionRepository
      const standings = yield* PlayerStatusCache
      const secrets = yield* Secrets
      const { openGuest, sessionOf, signIn, signUp } = yield* makeCreateSession
      const random = yield* SecureRandom.SecureRandom
      const withRandom = Effect.provideService(SecureRandom.SecureRandom, random)
      yield* sweepDaily("Sessions", rows.sweep)
      const current = makeCurrent(rows, secrets)
      const revoke = makeRevoke(rows, standings)

      return Sessions.of({
        createGuest: openGuest,
        signIn,
        signUp,

        lockOpenSession: Effect.fn("Sessions.hold")(function* (environmentId, playerId, sessionId) {
          const isOpen = yield* rows.hold({ environmentId, playerId, sessionId })
          if (!isOpen) return yield* new SessionRevoked()
        }),

        revokeAll: Effect.fn("Sessions.signOut")(function* (environmentId, playerId, kept) {
          const now = yield* DateTime.now
          yield* rows.revokeOthers({ environmentId, playerId, kept: kept ?? null, now })
          yield* standings.invalidate(environmentId, playerId)
        }),

        refresh: Effect.fn("Sessions.refresh")(function* (environmentId, token) {
          const presented = parseRefreshToken(secrets, token)
          if (presented === undefined) return yield* new InvalidRefreshToken()
          const { hash: tokenHash, sessionId } = presented
          const now = yield* DateTime.now
          const next = yield* newRefreshToken(secrets, sessionId)
          const expiresAt = DateTime.addDuration(now, lifetime)
          const chain = { environmentId, sessionId }
          const rotation = { ...chain, tokenHash, nextHash: next.hash, now, expiresAt }
          const player = yield* rows.rotate(rotation)
          if (Option.isSome(player)) return yield* sessionOf(player.value, sessionId, next.token)
          return yield* refuse({ rows, sanctions, revoke }, environmentId, presented)
        }, withRandom),

        logout: makeLogout(rows, secrets, revoke),

        revokedAt: rows.revokedAt,

        authenticate: Effect.fn("Sessions.holder")(function* (environmentId, token) {
          const { isRevoked, playerId, sessionId } = yield* current(environmentId, token)
          if (isRevoked) return yield* new SessionRevoked()
          return { playerId, sessionId }
        }),

        authenticateAppellant: Effect.fn("Sessions.appellant")(function* (environmentId, token) {
          const { isRevoked, playerId, sanctionId } = yield* current(environmentId, token)
          if (isRevoked && sanctionId === null) return yield* new SessionRevoked()
          return { playerId, sanctionId }
        }),

        sessionIdOf: (token) => {
          const presented = parseRefreshToken(secrets, token)
          return presented?.isMarked === true ? presented.sessionId : undefined
        }
      })
    })
  )
}

/** Ends a chain; all nodes look after its sockets. */
const makeRevoke = (rows: SessionRepository["Service"], standings: PlayerStatusCache["Service"]) =>
  Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    { playerId, sessionId }: SessionOwner
  ) {
    yield* rows.revoke({ environmentId, sessionId, now: yield* DateTime.now })
    yield* standings.invalidate(environmentId, playerId)
  })

type Revoke = ReturnType<typeof makeRevoke>

const makeLogout = (
  rows: SessionRepository["Service"],
  secrets: Secrets["Service"],
  revoke: Revoke
) =>
  Effect.fn("Sessions.logout")(function* (environmentId: EnvironmentId, token: string) {
    const presented = parseRefreshToken(secrets, token)
    if (presented === undefined) return
    const { sessionId } = presented
    const found = yield* rows.find({ environmentId, sessionId })
    if (Option.isNone(found)) return
    const { parentHash, playerId, tokenHash } = found.value
    if (!isIssued(presented, [tokenHash, parentHash])) return
    yield* revoke(environmentId, { playerId, sessionId })
  })

/** Only the newest token of a chain that has not ended proves anything. */
const makeCurrent = (rows: SessionRepository["Service"], secrets: Secrets["Service"]) =>
  Effect.fnUntraced(function* (environmentId: EnvironmentId, token: string) {
    const presented = parseRefreshToken(secrets, token)
    if (presented === undefined) return yield* new InvalidRefreshToken()
    const { hash, sessionId } = presented
    const found = yield* rows.find({ environmentId, sessionId })
    if (Option.isNone(found)) return yield* new InvalidRefreshToken()
    const { expiresAt, playerId, revokedAt, sanctionId, tokenHash } = found.value
    const isOver = DateTime.isLessThanOrEqualTo(expiresAt, yield* DateTime.now)
    if (hash !== tokenHash || isOver) return yield* new InvalidRefreshToken()
    return { playerId, sessionId, isRevoked: revokedAt !== null, sanctionId }
  })

/** A mark made under an earlier master key proves nothing, but a remembered hash does. */
const isIssued = (
  { hash, isMarked }: RefreshToken,
  remembered: ReadonlyArray<string | null>
): boolean => isMarked || remembered.includes(hash)

/** Why a token did not rotate; revokes the chain when a used one is presented. */
const refuse = Effect.fnUntraced(function* (
  {
    revoke,
    rows,
    sanctions
  }: {
    readonly rows: SessionRepository["Service"]
    readonly sanctions: SanctionRepository["Service"]
    readonly revoke: Revoke
  },
  environmentId: EnvironmentId,
  presented: RefreshToken
): Effect.fn.Return<never, RefreshError> {
  const { hash, sessionId } = presented
  const now = yield* DateTime.now
  const found = yield* rows.find({ environmentId, sessionId })
  if (Option.isNone(found)) return yield* new InvalidRefreshToken()
  const { expiresAt, parentHash, playerId, revokedAt, rotatedAt, tokenHash } = found.value
  if (!isIssued(presented, [tokenHash, parentHash])) return yield* new InvalidRefreshToken()
  // Asked of the database: the ban may be younger than what this node has heard.
  const [standing] = yield* sanctions.playerStatuses(environmentId, [playerId])
  const ban = standing && playerStatusOf(standing, now).banned
  if (ban !== undefined) return yield* ban
  if (revokedAt !== null) return yield* new SessionRevoked()
  if (DateTime.isLessThanOrEqualTo(expiresAt, now)) return yield* new InvalidRefreshToken()
  const raceEnd = DateTime.addDuration(rotatedAt, raceWindow)
  if (hash === parentHash && DateTime.isLessThan(now, raceEnd)) return yield* new RefreshRace()
  yield* revoke(environmentId, { playerId, sessionId })
  return yield* new SessionRevoked()
})
