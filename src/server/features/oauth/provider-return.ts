/** End of a redirect flow: the provider's response, and the outcome for the app. */
import { timingSafeEqual } from "node:crypto"
import { Effect } from "effect"
import { fragments, type ProviderReturn, type SignInError } from "#rpc/oauth/sign-in"
import { sha256 } from "#server/platform/secrets"
import { type AuthorizationProofs, type ProviderClient, ProviderClients } from "./clients.ts"

/** Returns the redirect URL with the outcome in its fragment. Browsers send a fragment to no server. */
export const redirectWith = (
  redirectUrl: string,
  outcome: { readonly code: string } | { readonly error: SignInError }
): string =>
  "code" in outcome
    ? `${redirectUrl}#${fragments.code}=${outcome.code}`
    : `${redirectUrl}#${fragments.error}=${outcome.error}`

/** Errors of OAuth and of Apple that mean that the user declined. */
const declineErrors = new Set(["access_denied", "user_cancelled_authorize"])

/**
 * Reads the parameters of a callback; returns the profile of the user, or the reason of its absence.
 */
export const makeReadReturn = Effect.gen(function* () {
  const clients = yield* ProviderClients
  return Effect.fnUntraced(function* (
    client: ProviderClient,
    returned: ProviderReturn,
    proofs: AuthorizationProofs
  ) {
    const fail = (error: SignInError) => Effect.fail(error)
    if (declineErrors.has(returned.error ?? "")) return yield* fail("access_denied")
    if (returned.error !== undefined) {
      const loggable = /^[\w.-]{1,64}$/.test(returned.error) ? returned.error : "unknown"
      yield* Effect.logWarning("The sign-in provider returned an error", loggable)
      return yield* fail("provider_error")
    }
    return yield* clients.exchangeCode(client, returned, proofs).pipe(
      Effect.tapError(({ reason }) =>
        Effect.logWarning("Failed to exchange a code at the sign-in provider", reason)
      ),
      Effect.mapError((): SignInError => "provider_error")
    )
  })
})

/** Checks a PKCE verifier against its challenge (S256), in constant time. */
export const isVerifierOf = (challenge: string, verifier: string): boolean => {
  const expected = Buffer.from(challenge)
  const actual = Buffer.from(sha256(verifier))
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
