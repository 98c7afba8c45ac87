/**
 * Access tokens: JWTs (ES256, 15 minutes) that name the player, the environment and the session. Game
 * servers verify them offline with the published key set.
 *
 * Verification accepts one algorithm, known key ids, this issuer and canonical base64url only.
 */
import { Clock, Context, DateTime, Effect, Layer, Schema } from "effect"
import { errors, importJWK, jwtVerify, SignJWT } from "jose"
import type { PlayerCaller } from "#rpc/auth"
import { TokenExpired, Unauthorized } from "#rpc/errors/codes"
import { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import { AccessClaims } from "#rpc/sessions"
import type { SigningKeyRepository } from "#sql/sessions"
import { awaitDatabase, type DatabaseStartError } from "#server/platform/database-start"
import { type SecretError, type Secrets, sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { algorithm, type PublicJwk, type PublicJwks, signingKeys } from "./signing-keys.ts"
import { TokenCache } from "./token-cache.ts"

const verifiedTokensMax = 50_000

export const accessTokenSeconds = 15 * 60

/** The claims that the caller of {@link AccessTokens} chooses. */
export interface TokenSubject {
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
  readonly sessionId: SessionId
  readonly isGuest: boolean
}

const tokenType = "at+jwt"
const tokenMaxCharacters = 2048

/** A compact JWS with a 64-byte signature. The last character must have no spare bits set. */
const tokenPattern = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{85}[AQgw]$/

const decodeClaims = Schema.decodeUnknownEffect(
  Schema.Struct({
    ...AccessClaims.fields,
    aud: EnvironmentId,
    sub: PlayerId,
    sid: SessionId
  })
)

/** Signs and verifies access tokens. */
export class AccessTokens extends Context.Service<
  AccessTokens,
  {
    readonly sign: (subject: TokenSubject) => Effect.Effect<string>
    /** Verifies a token that was issued for this environment. */
    readonly verify: (
      token: string,
      environmentId: EnvironmentId
    ) => Effect.Effect<PlayerCaller, Unauthorized | TokenExpired>
    /** Verifies a token of any environment. */
    readonly identify: (token: string) => Effect.Effect<PlayerCaller, Unauthorized | TokenExpired>
    /** The public keys, newest first (RFC 7517). */
    readonly jwks: { readonly keys: ReadonlyArray<PublicJwk> }
  }
>()("server/features/sessions/tokens/AccessTokens") {
  static readonly layer: Layer.Layer<
    AccessTokens,
    SecretError | DatabaseStartError,
    SigningKeyRepository | Secrets | Settings
  > = Layer.effect(
    AccessTokens,
    Effect.gen(function* () {
      const { baseUrl } = yield* Settings
      const { privateKey, publicJwks } = yield* awaitDatabase(signingKeys)
      const verifySignature = yield* makeVerifySignature(baseUrl, publicJwks)
      const cache = new TokenCache(verifiedTokensMax)
      const [{ kid }] = publicJwks
      return AccessTokens.of({
        sign: Effect.fnUntraced(function* ({ environmentId, isGuest, playerId, sessionId }) {
          const iat = Math.floor((yield* Clock.currentTimeMillis) / 1000)
          const exp = iat + accessTokenSeconds
          const subject = { sub: playerId, sid: sessionId, guest: isGuest }
          const claims: AccessClaims = { iss: baseUrl, aud: environmentId, ...subject, iat, exp }
          const token = yield* Effect.promise(() =>
            new SignJWT(claims)
              .setProtectedHeader({ alg: algorithm, kid, typ: tokenType })
              .sign(privateKey)
          )
          // Most clients call the node that signed them in next.
          const caller = { playerId, environmentId, sessionId, isGuest, expiresAt: exp * 1000 }
          cache.set(sha256(token), caller)
          return token
        }),
        verify: Effect.fnUntraced(function* (token, environmentId) {
          if (token.length > tokenMaxCharacters) return yield* new Unauthorized()
          const hash = sha256(token)
          const now = yield* Clock.currentTimeMillis
          const cached = cache.get(hash)
          if (cached === undefined) {
            const caller = yield* verifySignature(token, environmentId, now)
            cache.set(hash, caller)
            return caller
          }
          if (cached.environmentId !== environmentId) return yield* new Unauthorized()
          if (cached.expiresAt > now) return cached
          cache.delete(hash)
          return yield* new TokenExpired()
        }),
        identify: Effect.fnUntraced(function* (token) {
          if (token.length > tokenMaxCharacters) return yield* new Unauthorized()
          return yield* verifySignature(token, undefined, yield* Clock.currentTimeMillis)
        }),
        jwks: { keys: publicJwks }
      })
    })
  )
}

/** Verifies the signature and the claims of a token. */
const makeVerifySignature = Effect.fnUntraced(function* (issuer: string, jwks: PublicJwks) {
  const keys = new Map(
    yield* Effect.forEach(jwks, (jwk) =>
      Effect.map(
        Effect.promise(() => importJWK(jwk, algorithm)),
        (key) => [jwk.kid, key] as const
      )
    )
  )
  return Effect.fnUntraced(function* (
    token: string,
    audience: EnvironmentId | undefined,
    now: number
  ) {
    if (!tokenPattern.test(token)) return yield* new Unauthorized()
    const verified = yield* Effect.tryPromise({
      try: () =>
        jwtVerify(
          token,
          ({ kid }) => keys.get(kid ?? "") ?? Promise.reject(new errors.JWKSNoMatchingKey()),
          {
            algorithms: [algorithm],
            typ: tokenType,
            issuer,
            ...(audience === undefined ? {} : { audience }),
            currentDate: DateTime.toDate(DateTime.makeUnsafe(now)),
            requiredClaims: ["iss", "aud", "sub", "sid", "iat", "exp"]
          }
        ),
      catch: (cause) =>
        cause instanceof errors.JWTExpired ? new TokenExpired() : new Unauthorized()
    })
    const claims = yield* Effect.mapError(decodeClaims(verified.payload), () => new Unauthorized())
    const caller: PlayerCaller = {
      playerId: claims.sub,
      environmentId: claims.aud,
      sessionId: claims.sid,
      isGuest: claims.guest,
      expiresAt: claims.exp * 1000
    }
    return caller
  })
})
