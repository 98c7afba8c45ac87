/**
 * Id tokens of the OpenID providers (spec section 5): signature by the provider's own key set, one
 * algorithm, issuer, audience and end. The nonce is the caller's to compare. A node fetches a key set
 * once in ten minutes, and for an unknown key at most twice a minute.
 */
import { DateTime, Effect } from "effect"
import { createRemoteJWKSet, customFetch, errors, jwtVerify, type RemoteJWKSet } from "jose"
import { InvalidToken } from "#rpc/errors/codes"
import type { Provider } from "#rpc/identities"
import { oauth as limits } from "#rpc/limits"
import { type ProviderHttp, ProviderError, idTokenAlgorithm } from "./provider-http.ts"

/** What an id token says. */
export type Claims = Readonly<Record<string, unknown>>

const keySetMillis = 600_000
const keySetRetryMillis = 30_000

/** What `jose` says of a key set that it could not get, rather than of the token. */
const keySetFaults = new Set(["ERR_JOSE_GENERIC", "ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID"])

const faultOf = (cause: unknown): InvalidToken | ProviderError =>
  cause instanceof errors.JOSEError && !keySetFaults.has(cause.code)
    ? new InvalidToken()
    : new ProviderError({ reason: `The key set: ${cause instanceof Error ? cause.message : ""}` })

/** Verifies a token that was made for one of these clients. */
export const makeVerify = ({ fetchWithin, shapes }: ProviderHttp) => {
  const keySets = new Map<Provider, { readonly issuer: string; readonly keys: RemoteJWKSet }>()
  for (const { provider, reach, tells } of Object.values(shapes)) {
    if (tells.by !== "token") continue
    const keys = createRemoteJWKSet(new URL(tells.keys), {
      timeoutDuration: limits.requestMillis,
      cacheMaxAge: keySetMillis,
      cooldownDuration: keySetRetryMillis,
      [customFetch]: fetchWithin(reach)
    })
    keySets.set(provider, { issuer: tells.issuer, keys })
  }
  return Effect.fnUntraced(function* (
    provider: Provider,
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
      catch: faultOf
    })
    const claims: Claims = verified.payload
    return claims
  })
}
export type Verify = ReturnType<typeof makeVerify>
