/** How sessions begin (spec section 3): a guest, a sign-up, a sign-in; and what a session is answered as. */
import { DateTime, Duration, Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { PlayerNotFound } from "#rpc/errors/codes"
import { type EnvironmentId, newId, type PlayerId, type SessionId } from "#rpc/ids"
import { sessions as limits } from "#rpc/limits"
import { normalizeDisplayName } from "#rpc/players"
import type { NewIdentity } from "#sql/identities"
import { SanctionRepository } from "#sql/moderation"
import type { NewPlayer, PlayerRow } from "#sql/players"
import { SessionRepository } from "#sql/sessions"
import { Secrets } from "#server/platform/secrets"
import { Usage } from "#server/platform/usage"
import { playerView } from "../players/view.ts"
import { playerStatusOf } from "../players/status-cache.ts"
import { newRefreshToken } from "./refresh-tokens.ts"
import { AccessTokens } from "./tokens.ts"

/** A refresh token ends this long after its issue. */
export const lifetime = Duration.seconds(limits.refreshTokenSeconds)

const nameAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

/** `Player-7K3Q`. */
const defaultDisplayName = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  const bytes = yield* random.randomBytes(4)
  return `Player-${Array.from(bytes, (byte) => nameAlphabet.charAt(byte & 31)).join("")}`
})

/** What a player is made with: a guest has no identity. */
export interface FirstSignIn {
  readonly displayName?: string | undefined
  readonly identity: NewIdentity
}

/** A player as it begins. */
const newPlayer = Effect.fnUntraced(function* (
  environmentId: EnvironmentId,
  displayName: string | undefined,
  now: DateTime.Utc
) {
  return {
    id: yield* newId.player,
    environmentId,
    displayName: normalizeDisplayName(displayName ?? (yield* defaultDisplayName)),
    isGuest: true,
    declaredAgeBand: null,
    createdAt: now
  } satisfies NewPlayer
})

/** The ways to begin a session. */
export const makeCreateSession = Effect.gen(function* () {
  const rows = yield* SessionRepository
  const sanctions = yield* SanctionRepository
  const secrets = yield* Secrets
  const tokens = yield* AccessTokens
  const usage = yield* Usage
  const random = yield* SecureRandom.SecureRandom
  const withRandom = Effect.provideService(SecureRandom.SecureRandom, random)

  const sessionOf = Effect.fnUntraced(function* (
    player: PlayerRow,
    sessionId: SessionId,
    refreshToken: string
  ) {
    const { environmentId, id: playerId, isGuest } = player
    yield* usage.playerSeen(environmentId, playerId)
    const accessToken = yield* tokens.sign({ environmentId, playerId, sessionId, isGuest })
    const expiresIn = limits.accessTokenSeconds
    return { player: playerView(player), accessToken, expiresIn, refreshToken }
  })

  const opening = Effect.gen(function* () {
    const now = yield* DateTime.now
    const sessionId = yield* newId.session
    const { hash: tokenHash, token } = yield* newRefreshToken(secrets, sessionId)
    const expiresAt = DateTime.addDuration(now, lifetime)
    return { opened: { sessionId, tokenHash, now, expiresAt }, token }
  })

  const openGuest = Effect.fn("Sessions.openGuest")(function* (
    environmentId: EnvironmentId,
    displayName: string | undefined
  ) {
    const { opened, token } = yield* opening
    const player = yield* newPlayer(environmentId, displayName, opened.now)
    yield* rows.open({ ...opened, player })
    const guest = { ...player, methods: [], emailVerified: false }
    return yield* sessionOf(guest, opened.sessionId, token)
  }, withRandom)

  const signUp = Effect.fn("Sessions.signUp")(function* (
    environmentId: EnvironmentId,
    { displayName, identity }: FirstSignIn
  ) {
    const { opened, token } = yield* opening
    const guest = yield* newPlayer(environmentId, displayName, opened.now)
    const player = { ...guest, isGuest: false }
    const linked = { playerId: player.id, linkedAt: opened.now }
    yield* rows.createWithIdentity({ ...opened, player }, { ...identity, environmentId, ...linked })
    const { emailVerified, provider } = identity
    const isVerified = provider === "email" && emailVerified
    const signedUp = { ...player, methods: [provider], emailVerified: isVerified }
    return yield* sessionOf(signedUp, opened.sessionId, token)
  }, withRandom)

  const signIn = Effect.fn("Sessions.signIn")(function* (
    environmentId: EnvironmentId,
    playerId: PlayerId
  ) {
    const { opened, token } = yield* opening
    const player = yield* rows.resume({ ...opened, environmentId, playerId })
    if (Option.isSome(player)) return yield* sessionOf(player.value, opened.sessionId, token)
    const [standing] = yield* sanctions.playerStatuses(environmentId, [playerId])
    const ban = standing && playerStatusOf(standing, opened.now).banned
    return yield* ban ?? new PlayerNotFound()
  }, withRandom)

  return { openGuest, sessionOf, signIn, signUp }
})
