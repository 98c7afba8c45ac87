/** Creates sessions: for a guest, at sign-up and at sign-in. */
import { DateTime, Duration, Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { PlayerNotFound } from "#rpc/errors/codes"
import { type EnvironmentId, newId, type PlayerId, type SessionId } from "#rpc/ids"
import { normalizeName } from "#rpc/text"
import { secondsPerDay } from "#rpc/units"
import type { NewIdentity } from "#sql/identities"
import { SanctionRepository } from "#sql/moderation"
import type { NewPlayer, PlayerRow } from "#sql/players"
import { SessionRepository } from "#sql/sessions"
import { Secrets } from "#server/platform/secrets"
import { Usage } from "#server/platform/usage"
import { playerStatusOf } from "../players/status-cache.ts"
import { playerView } from "../players/view.ts"
import { newRefreshToken } from "./refresh-tokens.ts"
import { AccessTokens, accessTokenSeconds } from "./tokens.ts"

const refreshTokenSeconds = 90 * secondsPerDay

/** Lifetime of a refresh token. */
export const lifetime = Duration.seconds(refreshTokenSeconds)

/** Alphabet of Crockford's base 32, in which no letter looks like a digit. */
const nameAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

/** Generates a display name such as `Player-7K3Q`. */
const defaultDisplayName = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  const bytes = yield* random.randomBytes(4)
  return `Player-${Array.from(bytes, (byte) => nameAlphabet.charAt(byte & 31)).join("")}`
})

/** Player to create together with its first identity. */
export interface SignUp {
  readonly displayName?: string | undefined
  readonly identity: NewIdentity
}

const newGuest = Effect.fnUntraced(function* (
  environmentId: EnvironmentId,
  displayName: string | undefined,
  now: DateTime.Utc
) {
  return {
    id: yield* newId.player,
    environmentId,
    displayName: normalizeName(displayName ?? (yield* defaultDisplayName)),
    isGuest: true,
    declaredAgeBand: null,
    createdAt: now
  } satisfies NewPlayer
})

/** Functions that create sessions, and the session view that a refresh shares with them. */
export const makeCreateSession = Effect.gen(function* () {
  const repository = yield* SessionRepository
  const sanctions = yield* SanctionRepository
  const secrets = yield* Secrets
  const tokens = yield* AccessTokens
  const usage = yield* Usage
  const random = yield* SecureRandom.SecureRandom
  const withRandom = Effect.provideService(SecureRandom.SecureRandom, random)

  /** Signs an access token and counts the player as active. */
  const sessionView = Effect.fnUntraced(function* (
    player: PlayerRow,
    sessionId: SessionId,
    refreshToken: string
  ) {
    const { environmentId, id: playerId, isGuest } = player
    yield* usage.playerSeen(environmentId, playerId)
    const accessToken = yield* tokens.sign({ environmentId, playerId, sessionId, isGuest })
    const expiresIn = accessTokenSeconds
    return { player: playerView(player), accessToken, expiresIn, refreshToken }
  })

  const newSession = Effect.gen(function* () {
    const now = yield* DateTime.now
    const sessionId = yield* newId.session
    const { hash: tokenHash, token } = yield* newRefreshToken(secrets, sessionId)
    const expiresAt = DateTime.addDuration(now, lifetime)
    return { session: { sessionId, tokenHash, now, expiresAt }, token }
  })

  const createGuest = Effect.fn("Sessions.createGuest")(function* (
    environmentId: EnvironmentId,
    displayName: string | undefined
  ) {
    const { session, token } = yield* newSession
    const player = yield* newGuest(environmentId, displayName, session.now)
    yield* repository.createWithPlayer({ ...session, player })
    const row = { ...player, methods: [], emailVerified: false }
    return yield* sessionView(row, session.sessionId, token)
  }, withRandom)

  const signUp = Effect.fn("Sessions.signUp")(function* (
    environmentId: EnvironmentId,
    { displayName, identity }: SignUp
  ) {
    const { session, token } = yield* newSession
    const guest = yield* newGuest(environmentId, displayName, session.now)
    const player = { ...guest, isGuest: false }
    const link = { environmentId, playerId: player.id, linkedAt: session.now }
    yield* repository.createWithIdentity({ ...session, player }, { ...identity, ...link })
    const { emailVerified, provider } = identity
    const isVerified = provider === "email" && emailVerified
    const row = { ...player, methods: [provider], emailVerified: isVerified }
    return yield* sessionView(row, session.sessionId, token)
  }, withRandom)

  const signIn = Effect.fn("Sessions.signIn")(function* (
    environmentId: EnvironmentId,
    playerId: PlayerId
  ) {
    const { session, token } = yield* newSession
    const player = yield* repository.create({ ...session, environmentId, playerId })
    if (Option.isSome(player)) return yield* sessionView(player.value, session.sessionId, token)
    const [row] = yield* sanctions.playerStatuses(environmentId, [playerId])
    const ban = row && playerStatusOf(row, session.now).banned
    return yield* ban ?? new PlayerNotFound()
  }, withRandom)

  return { createGuest, sessionView, signIn, signUp }
})
