/**
 * Access tokens (spec sections 5.4 and 8, decisions 3.1.15): JWTs that live for 15 minutes, are
 * signed with ES256 by a key of this deployment, and name player, environment and session. Game
 * servers verify them offline with the published key set.
 *
 * The key pair is made once for a database and sealed under the master key. Only tokens of exactly
 * this form are looked at: one algorithm, a known key id, our issuer, canonical base64url.
 */
import { Clock, Context, DateTime, Effect, Layer, Schema } from "effect"
import {
  calculateJwkThumbprint,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  jwtVerify,
  SignJWT
} from "jose"
import type { PlayerCaller } from "#rpc/auth"
import { TokenExpired, Unauthorized } from "#rpc/errors/codes"
import { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import { caches, sessions as limits } from "#rpc/limits"
import { AccessClaims } from "#rpc/sessions"
import { type SigningKeyRow, SigningKeyRepository } from "#sql/sessions"
import { type SecretError, Secrets, sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { TokenCache } from "./token-cache.ts"

/** Whom a token is for. */
export interface TokenSubject {
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
  readonly sessionId: SessionId
  readonly isGuest: boolean
}

/** A JSON Web Key without its private part, as the key set shows it. */
const PublicJwk = Schema.Struct({
  kty: Schema.Literal("EC"),
  crv: Schema.Literal("P-256"),
  x: Schema.String,
  y: Schema.String,
  kid: Schema.String,
  alg: Schema.Literal("ES256"),
  use: Schema.Literal("sig")
})
export type PublicJwk = typeof PublicJwk.Type

const PrivateJwk = Schema.Struct({ ...PublicJwk.fields, d: Schema.String })

const PublicJwkText = Schema.fromJsonString(PublicJwk)
const PrivateJwkText = Schema.fromJsonString(PrivateJwk)

const algorithm = "ES256"
const tokenType = "at+jwt"
const tokenMaxCharacters = 2048
const purpose = "signing key"

/** Three parts; a signature of 64 bytes, whose last character has no bits to spare. */
const tokenForm = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{85}[AQgw]$/

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
    /** The player of a token that was issued for this environment. */
    readonly verify: (
      token: string,
      environmentId: EnvironmentId
    ) => Effect.Effect<PlayerCaller, Unauthorized | TokenExpired>
    /** The player of a token, whichever environment it was issued for. */
    readonly identify: (token: string) => Effect.Effect<PlayerCaller, Unauthorized | TokenExpired>
    /** The public keys, newest first (RFC 7517). */
    readonly jwks: { readonly keys: ReadonlyArray<PublicJwk> }
  }
>()("server/features/sessions/tokens/AccessTokens") {
  static readonly layer: Layer.Layer<
    AccessTokens,
    SecretError,
    SigningKeyRepository | Secrets | Settings
  > = Layer.effect(
    AccessTokens,
    Effect.gen(function* () {
      const { baseUrl } = yield* Settings
      const { privateKey, publicJwks } = yield* signingKeys
      const verifySignature = yield* makeVerify(baseUrl, publicJwks)
      const verified = new TokenCache(caches.verifiedTokens)
      const [{ kid }] = publicJwks
      return AccessTokens.of({
        sign: Effect.fnUntraced(function* ({ environmentId, isGuest, playerId, sessionId }) {
          const iat = Math.floor((yield* Clock.currentTimeMillis) / 1000)
          const exp = iat + limits.accessTokenSeconds
          const subject = { sub: playerId, sid: sessionId, guest: isGuest }
          const claims: AccessClaims = { iss: baseUrl, aud: environmentId, ...subject, iat, exp }
          const token = yield* Effect.promise(() =>
            new SignJWT(claims)
              .setProtectedHeader({ alg: algorithm, kid, typ: tokenType })
              .sign(privateKey)
          )
          // Most players come to the node that has just signed them in.
          const caller = { playerId, environmentId, sessionId, isGuest, expiresAt: exp * 1000 }
          verified.set(sha256(token), caller)
          return token
        }),
        verify: Effect.fnUntraced(function* (token, environmentId) {
          if (token.length > tokenMaxCharacters) return yield* new Unauthorized()
          const hash = sha256(token)
          const now = yield* Clock.currentTimeMillis
          const known = verified.get(hash)
          if (known === undefined) {
            const caller = yield* verifySignature(token, environmentId, now)
            verified.set(hash, caller)
            return caller
          }
          if (known.environmentId !== environmentId) return yield* new Unauthorized()
          if (known.expiresAt > now) return known
          verified.delete(hash)
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

type Keys = readonly [PublicJwk, ...ReadonlyArray<PublicJwk>]

/** The key pair of this deployment; the first process on a database makes it. */
const signingKeys = Effect.gen(function* () {
  const rows = yield* SigningKeyRepository
  const secrets = yield* Secrets
  const found = yield* rows.all
  const stored = found.length > 0 ? found : yield* rows.allOrCreate(makeKey)
  const [newest, ...older] = yield* Effect.forEach(stored, (row) =>
    Effect.orDie(Schema.decodeEffect(PublicJwkText)(row.publicJwk))
  )
  const sealed = stored[0]?.privateJwkSealed
  if (newest === undefined || sealed === undefined) return yield* Effect.die("no signing key")
  const text = yield* secrets.open(sealed, purpose)
  const jwk = yield* Effect.orDie(Schema.decodeEffect(PrivateJwkText)(text))
  const privateKey = yield* Effect.promise(() => importJWK(jwk, algorithm))
  const publicJwks: Keys = [newest, ...older]
  return { privateKey, publicJwks }
})

const makeKey = Effect.gen(function* () {
  const secrets = yield* Secrets
  const jwk = yield* Effect.promise(async () => {
    const pair = await generateKeyPair(algorithm, { extractable: true })
    const made = await exportJWK(pair.privateKey)
    return { ...made, kid: await calculateJwkThumbprint(made), alg: algorithm, use: "sig" }
  })
  const privateJwk = yield* Schema.decodeUnknownEffect(PrivateJwk)(jwk)
  const publicJwk = yield* Schema.decodeUnknownEffect(PublicJwk)(jwk)
  const row: SigningKeyRow = {
    kid: privateJwk.kid,
    publicJwk: yield* Schema.encodeEffect(PublicJwkText)(publicJwk),
    privateJwkSealed: yield* secrets.seal(
      yield* Schema.encodeEffect(PrivateJwkText)(privateJwk),
      purpose
    ),
    createdAt: yield* DateTime.now
  }
  return row
}).pipe(Effect.orDie)

/** The check of a token that this node has not seen yet. */
const makeVerify = Effect.fnUntraced(function* (issuer: string, jwks: Keys) {
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
    if (!tokenForm.test(token)) return yield* new Unauthorized()
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
