/**
 * Verifies id tokens of the OpenID providers: signature, algorithm, issuer, audience and expiry. The
 * caller compares the nonce. A node caches a key set for ten minutes. For an unknown key id it refetches
 * at most twice a minute.
 */
import { DateTime, Effect } from "effect"
import { createRemoteJWKSet, customFetch, errors, jwtVerify, type RemoteJWKSet } from "jose"
import { InvalidToken } from "#rpc/errors/codes"
import type { SignInProvider } from "./definitions.ts"
import {
  idTokenAlgorithm,
  ProviderError,
  type ProviderHttp,
  providerRequests
} from "./provider-http.ts"

/** The claims of an id token. */
export type Claims = Readonly<Record<string, unknown>>

const keySetMillis = 600_000
const keySetRetryMillis = 30_000

/** Error codes of `jose` for a failed fetch of the key set, as opposed to an invalid token. */
const keySetErrorCodes = new Set(["ERR_JOSE_GENERIC", "ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID"])

const errorOf = (cause: unknown): InvalidToken | ProviderError =>
  cause instanceof errors.JOSEError && !keySetErrorCodes.has(cause.code)
    ? new InvalidToken()
    : new ProviderError({
        reason: `Failed to fetch the key set: ${cause instanceof Error ? cause.message : ""}`
      })

/** Verifies an id token whose audience is one of the given clients. */
export const makeVerifyIdToken = ({ definitions, fetchWithin }: ProviderHttp) => {
  const keySets = new Map<
    SignInProvider,
    { readonly issuer: string; readonly keys: RemoteJWKSet }
  >()
  for (const { profile, provider, targets } of Object.values(definitions)) {
    if (profile.source !== "id-token") continue
    const keys = createRemoteJWKSet(new URL(profile.jwks), {
      timeoutDuration: providerRequests.requestMillis,
      cacheMaxAge: keySetMillis,
      cooldownDuration: keySetRetryMillis,
      // All tenants share the key sets.
      [customFetch]: fetchWithin(targets, undefined)
    })
    keySets.set(provider, { issuer: profile.issuer, keys })
  }
  return Effect.fnUntraced(function* (
    provider: SignInProvider,
    idToken: string,
    audience: ReadonlyArray<string>
  ) {
    const keySet = keySets.get(provider)
    if (keySet === undefined) return yield* new InvalidToken()
    const now = DateTime.toDate(yield* DateTime.now)
    const verified = yield* Effect.tryPromise({
      try: () =>
        jwtVerify(idToken, keySet.keys, {
          algorithms: [idTokenAlgorithm],
          issuer: keySet.issuer,
          audience: [...audience],
          currentDate: now,
          requiredClaims: ["sub", "iat", "exp", "nonce"]
        }),
      catch: errorOf
    })
    const claims: Claims = verified.payload
    return claims
  })
}
export type VerifyIdToken = ReturnType<typeof makeVerifyIdToken>
