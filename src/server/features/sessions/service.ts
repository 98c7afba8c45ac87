/**
 * Sessions: one sign-in on one device. Each session owns a family of refresh tokens, of which only the
 * newest is valid.
 *
 * Within ten seconds of a rotation, the replaced token gets `refresh_race`: another tab refreshed
 * first. A replaced token that arrives later, or an older one, is a copy. The service then revokes the
 * session.
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
import { guests, sessions as limits } from "#rpc/limits"
import type { Session } from "#rpc/sessions"
import type { IdentityConflict } from "#sql/identities"
import { SanctionRepository } from "#sql/moderation"
import { SessionRepository } from "#sql/sessions"
import { sweepDaily } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import { Secrets } from "#server/platform/secrets"
import { playerStatusOf, PlayerStatusCache } from "../players/status-cache.ts"
import { lifetime, makeCreateSession, type SignUp } from "./create.ts"
import { newRefreshToken, parseRefreshToken, type RefreshToken } from "./refresh-tokens.ts"

type RefreshError = InvalidRefreshToken | SessionRevoked | PlayerBanned | RefreshRace

const raceWindow = Duration.seconds(limits.refreshRaceSeconds)

/** The player and the session of a valid refresh token. */
interface SessionOwner {
  readonly playerId: PlayerId
  readonly sessionId: SessionId
}

/** Player who may appeal, and the ban that revoked the session, if any. */
interface Appellant {
  readonly playerId: PlayerId
  readonly sanctionId: SanctionId | null
}

/** Creates, refreshes and revokes sessions. */
export class Sessions extends Context.Service<
  Sessions,
  {
    /** Creates a guest player and its session. */
    readonly createGuest: (
      environmentId: EnvironmentId,
      displayName: string | undefined
    ) => Effect.Effect<Session>
    /** Creates a player with an identity, and its session. */
    readonly signUp: (
      environmentId: EnvironmentId,
      signUp: SignUp
    ) => Effect.Effect<Session, IdentityConflict>
    /** Adds a session to an existing player. */
    readonly signIn: (
      environmentId: EnvironmentId,
      playerId: PlayerId
    ) => Effect.Effect<Session, PlayerBanned | PlayerNotFound>
    /**
     * Locks the player until the commit, if this session is open. Call it before creating another
     * session from an access token: the token stays valid for up to 15 minutes after a revocation.
     */
    readonly lockOpenSession: (
      environmentId: EnvironmentId,
      playerId: PlayerId,
      sessionId: string
    ) => Effect.Effect<void, SessionRevoked>
    /** Revokes the sessions of a player except `kept`. All nodes close the sockets of revoked sessions. */
    readonly revokeAll: (
      environmentId: EnvironmentId,
      playerId: PlayerId,
      kept?: SessionId
    ) => Effect.Effect<void>
    /** Identifies the owner of the current token of an open session, without rotating the token. */
    readonly authenticate: (
      environmentId: EnvironmentId,
      token: string
    ) => Effect.Effect<SessionOwner, InvalidRefreshToken | SessionRevoked>
    /** Rotates the refresh token and signs a new access token. */
    readonly refresh: (
      environmentId: EnvironmentId,
      token: string
    ) => Effect.Effect<Session, RefreshError>
    /**
     * Signs out the session of a refresh token: its refresh tokens end, while its access tokens and
     * sockets continue until they expire. Ignores unknown tokens.
     */
    readonly logout: (environmentId: EnvironmentId, token: string) => Effect.Effect<void>
    /** Returns the time of revocation; undefined for a session that is unknown or not revoked. */
    readonly revokedAt: (
      environmentId: EnvironmentId,
      sessionId: SessionId
    ) => Effect.Effect<DateTime.Utc | undefined>
    /**
     * Identifies the owner of a token like `authenticate`, but also accepts the current token of a
     * session that a ban revoked.
     */
    readonly authenticateAppellant: (
      environmentId: EnvironmentId,
      token: string
    ) => Effect.Effect<Appellant, InvalidRefreshToken | SessionRevoked>
    /**
     * Returns the session id in a token if the MAC proves that this service issued it. Reads no
     * database.
     */
    readonly sessionIdOf: (token: string) => SessionId | undefined
  }
>()("server/features/sessions/service/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      const repository = yield* SessionRepository
      const sanctions = yield* SanctionRepository
      const statuses = yield* PlayerStatusCache
      const secrets = yield* Secrets
      const { createGuest, sessionView, signIn, signUp } = yield* makeCreateSession
      const random = yield* SecureRandom.SecureRandom
      const withRandom = Effect.provideService(SecureRandom.SecureRandom, random)
      yield* sweepSessions
      const findCurrent = makeFindCurrent(repository, secrets)
      const revoke = makeRevoke(repository, statuses)

      return Sessions.of({
        createGuest,
        signIn,
        signUp,

        lockOpenSession: Effect.fn("Sessions.lockOpenSession")(
          function* (environmentId, playerId, sessionId) {
            const isOpen = yield* repository.lockOpenSession({ environmentId, playerId, sessionId })
            if (!isOpen) return yield* new SessionRevoked()
          }
        ),

        revokeAll: Effect.fn("Sessions.revokeAll")(function* (environmentId, playerId, kept) {
          const now = yield* DateTime.now
          yield* repository.revokeOthers({ environmentId, playerId, kept: kept ?? null, now })
          yield* statuses.invalidate(environmentId, playerId)
        }),

        refresh: Effect.fn("Sessions.refresh")(function* (environmentId, token) {
          const presented = parseRefreshToken(secrets, token)
          if (presented === undefined) return yield* new InvalidRefreshToken()
          const { hash: tokenHash, sessionId } = presented
          const now = yield* DateTime.now
          const next = yield* newRefreshToken(secrets, sessionId)
          const expiresAt = DateTime.addDuration(now, lifetime)
          const key = { environmentId, sessionId }
          const rotation = { ...key, tokenHash, nextHash: next.hash, now, expiresAt }
          const player = yield* repository.rotate(rotation)
          if (Option.isSome(player)) return yield* sessionView(player.value, sessionId, next.token)
          return yield* refuseRotation({ repository, sanctions, revoke }, environmentId, presented)
        }, withRandom),

        logout: makeLogout(repository, secrets),

        revokedAt: repository.revokedAt,

        authenticate: Effect.fn("Sessions.authenticate")(function* (environmentId, token) {
          const { isRevoked, playerId, sessionId } = yield* findCurrent(environmentId, token)
          if (isRevoked) return yield* new SessionRevoked()
          return { playerId, sessionId }
        }),

        authenticateAppellant: Effect.fn("Sessions.authenticateAppellant")(
          function* (environmentId, token) {
            const { isRevoked, playerId, sanctionId } = yield* findCurrent(environmentId, token)
            if (isRevoked && sanctionId === null) return yield* new SessionRevoked()
            return { playerId, sanctionId }
          }
        ),

        sessionIdOf: (token) => {
          const presented = parseRefreshToken(secrets, token)
          return presented?.hasValidMac === true ? presented.sessionId : undefined
        }
      })
    })
  )
}

/** Deletes expired sessions every day. Deletes those of guests only after the guests have expired. */
const sweepSessions = Effect.gen(function* () {
  const repository = yield* SessionRepository
  const guestDays = Math.max((yield* Settings).guestExpiryDays, guests.expiryDays)
  yield* sweepDaily("Sessions", (now) =>
    repository.sweep({
      expiredBefore: now,
      guestsBefore: DateTime.subtract(now, { days: guestDays + 1 })
    })
  )
})

/** Revokes a session. All nodes then check the sockets of the player. */
const makeRevoke = (
  repository: SessionRepository["Service"],
  statuses: PlayerStatusCache["Service"]
) =>
  Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    { playerId, sessionId }: SessionOwner
  ) {
    yield* repository.revoke({ environmentId, sessionId, now: yield* DateTime.now })
    yield* statuses.invalidate(environmentId, playerId)
  })

type Revoke = ReturnType<typeof makeRevoke>

const makeLogout = (repository: SessionRepository["Service"], secrets: Secrets["Service"]) =>
  Effect.fn("Sessions.logout")(function* (environmentId: EnvironmentId, token: string) {
    const presented = parseRefreshToken(secrets, token)
    if (presented === undefined) return
    const { sessionId } = presented
    const found = yield* repository.find({ environmentId, sessionId })
    if (Option.isNone(found)) return
    const { parentHash, tokenHash } = found.value
    if (!isIssued(presented, [tokenHash, parentHash])) return
    yield* repository.signOut({ environmentId, sessionId, now: yield* DateTime.now })
  })

/**
 * Finds the session of a current token: open or revoked, but not expired. Fails for a signed-out
 * session.
 */
const makeFindCurrent = (repository: SessionRepository["Service"], secrets: Secrets["Service"]) =>
  Effect.fnUntraced(function* (environmentId: EnvironmentId, token: string) {
    const presented = parseRefreshToken(secrets, token)
    if (presented === undefined) return yield* new InvalidRefreshToken()
    const { hash, sessionId } = presented
    const found = yield* repository.find({ environmentId, sessionId })
    if (Option.isNone(found)) return yield* new InvalidRefreshToken()
    const { expiresAt, playerId, revokedAt, sanctionId, signedOutAt, tokenHash } = found.value
    if (signedOutAt !== null && presented.hasValidMac) return yield* new SessionRevoked()
    const isExpired = DateTime.isLessThanOrEqualTo(expiresAt, yield* DateTime.now)
    if (hash !== tokenHash || isExpired) return yield* new InvalidRefreshToken()
    return { playerId, sessionId, isRevoked: revokedAt !== null, sanctionId }
  })

/**
 * Whether this service issued a token. A MAC under an earlier master key proves nothing, but a stored
 * hash does.
 */
const isIssued = (
  { hash, hasValidMac }: RefreshToken,
  storedHashes: ReadonlyArray<string | null>
): boolean => hasValidMac || storedHashes.includes(hash)

/** Fails with the reason of a refused rotation. Revokes the session if the token was reused. */
const refuseRotation = Effect.fnUntraced(function* (
  {
    repository,
    revoke,
    sanctions
  }: {
    readonly repository: SessionRepository["Service"]
    readonly sanctions: SanctionRepository["Service"]
    readonly revoke: Revoke
  },
  environmentId: EnvironmentId,
  presented: RefreshToken
): Effect.fn.Return<never, RefreshError> {
  const { hash, sessionId } = presented
  const now = yield* DateTime.now
  const found = yield* repository.find({ environmentId, sessionId })
  if (Option.isNone(found)) return yield* new InvalidRefreshToken()
  const { expiresAt, parentHash, playerId, revokedAt, rotatedAt, signedOutAt, tokenHash } =
    found.value
  if (!isIssued(presented, [tokenHash, parentHash])) return yield* new InvalidRefreshToken()
  // Reads the database: the cache of this node may not have seen the ban yet.
  const [status] = yield* sanctions.playerStatuses(environmentId, [playerId])
  const ban = status && playerStatusOf(status, now).banned
  if (ban !== undefined) return yield* ban
  if (revokedAt !== null || signedOutAt !== null) return yield* new SessionRevoked()
  if (DateTime.isLessThanOrEqualTo(expiresAt, now)) return yield* new InvalidRefreshToken()
  const raceEnd = DateTime.addDuration(rotatedAt, raceWindow)
  if (hash === parentHash && DateTime.isLessThan(now, raceEnd)) return yield* new RefreshRace()
  yield* revoke(environmentId, { playerId, sessionId })
  return yield* new SessionRevoked()
})
