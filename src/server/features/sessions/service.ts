/**
 * Sessions: one sign-in on one device. Each session owns a family of refresh tokens, of which only the
 * newest is valid.
 *
 * Within ten seconds of a rotation, the replaced token gets `refresh_race`: another tab refreshed
 * first. A replaced token that arrives later, or an older one, is a copy. The service then revokes the
 * session. A client whose response was lost repeats its refresh with the same key (`rotation.ts`).
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import {
  InvalidRefreshToken,
  type PlayerBanned,
  type PlayerNotFound,
  SessionRevoked
} from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId, SanctionId, SessionId } from "#rpc/ids"
import type { Session } from "#rpc/sessions"
import type { IdentityConflict } from "#sql/identities"
import { SessionRepository } from "#sql/sessions"
import { sweepDaily } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import { Secrets } from "#server/platform/secrets"
import { guestExpiryDaysDefault } from "#server/platform/settings/data"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { makeCreateSession, type SignUp } from "./create.ts"
import { isIssued, parseRefreshToken } from "./refresh-tokens.ts"
import { makeRefresh, makeReissue, type RefreshError } from "./rotation.ts"

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
    /**
     * Rotates the refresh token and signs a new access token. With the same key it does so again, with
     * the same refresh token, until that one is presented.
     */
    readonly refresh: (
      environmentId: EnvironmentId,
      token: string,
      key?: string
    ) => Effect.Effect<Session, RefreshError>
    /**
     * Signs another access token for the holder of the current token of an open session, without
     * rotating the token. None if the token is not current or the session has ended.
     */
    readonly reissue: (
      environmentId: EnvironmentId,
      token: string
    ) => Effect.Effect<Option.Option<Session>, PlayerBanned>
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
     * session that a ban revoked, and its parent, if the current token never reached the player.
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
      const statuses = yield* PlayerStatusCache
      const secrets = yield* Secrets
      const { createGuest, sessionView, signIn, signUp } = yield* makeCreateSession
      const refresh = yield* makeRefresh(sessionView)
      const reissue = yield* makeReissue(sessionView)
      yield* sweepSessions
      const findCurrent = makeFindCurrent(repository, secrets)

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

        refresh,
        reissue,

        logout: makeLogout(repository, secrets),

        revokedAt: repository.revokedAt,

        authenticate: Effect.fn("Sessions.authenticate")(function* (environmentId, token) {
          const current = yield* findCurrent(environmentId, token)
          const { isRevoked, playerId, sessionId, tokenHash } = current
          if (isRevoked) return yield* new SessionRevoked()
          if (current.isRepeatable) {
            yield* repository.endRepeats({ environmentId, sessionId, tokenHash })
          }
          return { playerId, sessionId }
        }),

        authenticateAppellant: Effect.fn("Sessions.authenticateAppellant")(
          function* (environmentId, token) {
            const { isRevoked, playerId, sanctionId } = yield* findCurrent(
              environmentId,
              token,
              true
            )
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
  const guestDays = Math.max((yield* Settings).guestExpiryDays, guestExpiryDaysDefault)
  yield* sweepDaily("Sessions", (now) =>
    repository.sweep({
      expiredBefore: now,
      guestsBefore: DateTime.subtract(now, { days: guestDays + 1 })
    })
  )
})

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
 * session. With `orParent`, also of the token before, while its rotation can be repeated.
 */
const makeFindCurrent = (repository: SessionRepository["Service"], secrets: Secrets["Service"]) =>
  Effect.fnUntraced(function* (environmentId: EnvironmentId, token: string, orParent = false) {
    const presented = parseRefreshToken(secrets, token)
    if (presented === undefined) return yield* new InvalidRefreshToken()
    const { hash, sessionId } = presented
    const found = yield* repository.find({ environmentId, sessionId })
    if (Option.isNone(found)) return yield* new InvalidRefreshToken()
    const { expiresAt, parentHash, playerId, revokedAt, rotationKeyHash, sanctionId } = found.value
    const { signedOutAt, tokenHash } = found.value
    const isRepeatable = rotationKeyHash !== null
    const isHeld = hash === tokenHash || (orParent && isRepeatable && hash === parentHash)
    if (signedOutAt !== null && presented.hasValidMac) return yield* new SessionRevoked()
    const isExpired = DateTime.isLessThanOrEqualTo(expiresAt, yield* DateTime.now)
    if (!isHeld || isExpired) return yield* new InvalidRefreshToken()
    return {
      playerId,
      sessionId,
      tokenHash,
      isRevoked: revokedAt !== null,
      isRepeatable,
      sanctionId
    }
  })
