/**
 * Rotation of refresh tokens. A refresh with a key can be repeated with the same token and key, and gives
 * the same next token with another access token. That ends when anybody presents the next token: the
 * response has arrived, and from then on a copy of the parent is found, with or without its key.
 */
import { DateTime, Duration, Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { refreshRaceSeconds } from "#rpc/client-limits"
import {
  type InvalidIdempotencyKey,
  InvalidRefreshToken,
  type PlayerBanned,
  RefreshRace,
  SessionRevoked
} from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import type { Session } from "#rpc/sessions"
import { SanctionRepository } from "#sql/moderation"
import type { PlayerRow } from "#sql/players"
import { SessionRepository } from "#sql/sessions"
import { Secrets, sha256 } from "#server/platform/secrets"
import { checkRepeatKey } from "#server/platform/spent-responses"
import { playerStatusOf, PlayerStatusCache } from "../players/status-cache.ts"
import { lifetime } from "./create.ts"
import {
  isIssued,
  makeSuccessors,
  newRefreshToken,
  parseRefreshToken,
  type RefreshToken
} from "./refresh-tokens.ts"

export type RefreshError =
  | InvalidIdempotencyKey
  | InvalidRefreshToken
  | SessionRevoked
  | PlayerBanned
  | RefreshRace

type SessionView = (
  player: PlayerRow,
  sessionId: SessionId,
  refreshToken: string
) => Effect.Effect<Session>

const raceWindow = Duration.seconds(refreshRaceSeconds)

/** Rotates the refresh token and signs a new access token. */
export const makeRefresh = Effect.fnUntraced(function* (sessionView: SessionView) {
  const repository = yield* SessionRepository
  const secrets = yield* Secrets
  const random = yield* SecureRandom.SecureRandom
  const successorsOf = makeSuccessors(secrets)
  const refuse = yield* makeRefuse

  /** Makes the response of an earlier rotation again; none unless this token and key made it. */
  const repeat = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    { hash: parentHash, sessionId }: RefreshToken,
    token: string,
    key: string
  ) {
    const successors = successorsOf(sessionId, token, key)
    const holder = yield* repository.findHolder({
      environmentId,
      sessionId,
      tokenHashes: successors.map(({ hash }) => hash),
      rotation: { parentHash, keyHash: sha256(key) },
      now: yield* DateTime.now
    })
    if (Option.isNone(holder)) return Option.none<Session>()
    const { tokenHash, ...player } = holder.value
    const next = successors.find(({ hash }) => hash === tokenHash)
    return next === undefined
      ? Option.none<Session>()
      : Option.some(yield* sessionView(player, sessionId, next.token))
  })

  return Effect.fn("Sessions.refresh")(
    function* (
      environmentId: EnvironmentId,
      token: string,
      key?: string
    ): Effect.fn.Return<Session, RefreshError, SecureRandom.SecureRandom> {
      yield* checkRepeatKey(key)
      const presented = parseRefreshToken(secrets, token)
      if (presented === undefined) return yield* new InvalidRefreshToken()
      const { hash: tokenHash, sessionId } = presented
      const now = yield* DateTime.now
      const derived = key === undefined ? undefined : successorsOf(sessionId, token, key)[0]
      const next = derived ?? (yield* newRefreshToken(secrets, sessionId))
      const expiresAt = DateTime.addDuration(now, lifetime)
      const keyHash = key === undefined ? null : sha256(key)
      const rotation = { environmentId, sessionId, tokenHash, nextHash: next.hash, keyHash, now }
      const player = yield* repository.rotate({ ...rotation, expiresAt })
      if (Option.isSome(player)) return yield* sessionView(player.value, sessionId, next.token)
      if (key !== undefined) {
        const repeated = yield* repeat(environmentId, presented, token, key)
        if (Option.isSome(repeated)) return repeated.value
      }
      return yield* refuse(environmentId, presented)
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )
})

/** Signs another access token for the holder of a current refresh token. */
export const makeReissue = Effect.fnUntraced(function* (sessionView: SessionView) {
  const repository = yield* SessionRepository
  const secrets = yield* Secrets
  const banOf = yield* makeBanOf
  return Effect.fn("Sessions.reissue")(function* (environmentId: EnvironmentId, token: string) {
    const presented = parseRefreshToken(secrets, token)
    if (presented === undefined) return Option.none<Session>()
    const { hash, sessionId } = presented
    const now = yield* DateTime.now
    const key = { environmentId, sessionId }
    const open = { ...key, tokenHashes: [hash], rotation: null, now }
    const holder = yield* repository.findHolder(open)
    if (Option.isSome(holder)) {
      return Option.some(yield* sessionView(holder.value, sessionId, token))
    }
    const found = yield* repository.find(key)
    const ban = Option.isSome(found) ? yield* banOf(environmentId, found.value.playerId) : undefined
    return ban === undefined ? Option.none<Session>() : yield* ban
  })
})

/** Reads a player's ban from the database: the cache of this node may not have seen it yet. */
const makeBanOf = Effect.map(SanctionRepository, (sanctions) =>
  Effect.fnUntraced(function* (environmentId: EnvironmentId, playerId: PlayerId) {
    const [status] = yield* sanctions.playerStatuses(environmentId, [playerId])
    return status && playerStatusOf(status, yield* DateTime.now).banned
  })
)

/** Fails with the reason of a refused rotation. Revokes the session if the token was reused. */
const makeRefuse = Effect.gen(function* () {
  const repository = yield* SessionRepository
  const statuses = yield* PlayerStatusCache
  const banOf = yield* makeBanOf
  return Effect.fnUntraced(function* (
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
    const ban = yield* banOf(environmentId, playerId)
    if (ban !== undefined) return yield* ban
    if (revokedAt !== null || signedOutAt !== null) return yield* new SessionRevoked()
    if (DateTime.isLessThanOrEqualTo(expiresAt, now)) return yield* new InvalidRefreshToken()
    const raceEnd = DateTime.addDuration(rotatedAt, raceWindow)
    if (hash === parentHash && DateTime.isLessThan(now, raceEnd)) return yield* new RefreshRace()
    yield* repository.revoke({ environmentId, sessionId, now })
    // All nodes then check the sockets of the player.
    yield* statuses.invalidate(environmentId, playerId)
    return yield* new SessionRevoked()
  })
})
