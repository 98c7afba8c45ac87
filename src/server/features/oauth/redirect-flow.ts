/**
 * Sign-in by redirect, for any subject: players of an environment, or developers. The start leads to the
 * provider, its callback to a code in the fragment of the page that started the flow.
 */
import { timingSafeEqual } from "node:crypto"
import { Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { fragments, type ProviderReturn, type SignInError } from "#rpc/oauth/sign-in"
import { randomSecret, sha256 } from "#server/platform/secrets"
import { Tenant } from "#server/platform/tenant"
import {
  type AuthorizationProofs,
  type ProviderClient,
  ProviderClients,
  type ProviderSignIn
} from "./clients.ts"
import type { SignInProvider } from "./definitions.ts"
import type { AuthorizationState, TakenFlow } from "./flow-store.ts"

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
const makeReadReturn = Effect.gen(function* () {
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
const isVerifierOf = (challenge: string, verifier: string): boolean => {
  const expected = Buffer.from(challenge)
  const actual = Buffer.from(sha256(verifier))
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}

/** Whose sign-in it is: where their flows are between the requests, and what a callback leads to. */
interface FlowSubject<P extends SignInProvider, F extends { readonly provider: P }, E> {
  /** The tenant whose flow it is, for the bounds of requests to providers. */
  readonly tenantOf: (flow: F) => string
  readonly annotationsOf: (flow: F) => Readonly<Record<string, string>>
  /** Stores the flow and returns its new state. */
  readonly putState: (flow: F, data: AuthorizationState) => Effect.Effect<string, E>
  readonly takeState: (
    provider: P,
    state: string
  ) => Effect.Effect<Option.Option<TakenFlow<F, AuthorizationState>>>
  /** The client at the provider; undefined where nobody has configured one. */
  readonly clientOf: (flow: F) => Effect.Effect<ProviderClient | undefined>
  /** Checks what the exchange will do, and stores the result under a new code. */
  readonly putResult: (
    flow: F,
    signIn: ProviderSignIn,
    challenge: string
  ) => Effect.Effect<string, SignInError>
}

/** The steps of the flow that all subjects have. */
export const makeRedirectFlow = Effect.fnUntraced(function* <
  P extends SignInProvider,
  F extends { readonly provider: P },
  E
>(subject: FlowSubject<P, F, E>) {
  const clients = yield* ProviderClients
  const random = yield* SecureRandom.SecureRandom
  const readReturn = yield* makeReadReturn

  const issueCode = Effect.fnUntraced(function* (
    flow: TakenFlow<F, AuthorizationState>,
    returned: ProviderReturn
  ) {
    const fail = (error: SignInError) => Effect.fail(error)
    if (flow.isExpired) return yield* fail("expired")
    const client = yield* subject.clientOf(flow)
    if (client === undefined) return yield* fail("provider_not_configured")
    const signIn = yield* readReturn(client, returned, flow.data)
    return yield* subject.putResult(flow, signIn, flow.data.challenge)
  })

  return {
    /** Returns the URL of the provider. */
    start: Effect.fnUntraced(
      function* (
        client: ProviderClient,
        flow: F,
        request: Pick<AuthorizationState, "challenge" | "redirectUrl">
      ) {
        const { challenge, redirectUrl } = request
        const proofs = { nonce: yield* randomSecret, verifier: yield* randomSecret }
        const state = yield* subject.putState(flow, { redirectUrl, challenge, ...proofs })
        return yield* clients.authorizeUrl(client, { state, ...proofs })
      },
      Effect.provideService(SecureRandom.SecureRandom, random)
    ),
    /** Returns the page to redirect to, with the code or the error; none if the state is unknown. */
    callback: Effect.fnUntraced(function* (provider: P, returned: ProviderReturn) {
      const found = yield* subject.takeState(provider, returned.state ?? "")
      if (Option.isNone(found)) return Option.none<string>()
      const flow = found.value
      const { redirectUrl } = flow.data
      return yield* issueCode(flow, returned).pipe(
        Effect.annotateLogs({ ...subject.annotationsOf(flow), provider }),
        // The provider's redirect carries no key.
        Effect.provideService(Tenant, subject.tenantOf(flow)),
        Effect.match({
          onSuccess: (code) => redirectWith(redirectUrl, { code }),
          onFailure: (error) => redirectWith(redirectUrl, { error })
        }),
        Effect.asSome
      )
    })
  }
})

/** Returns the flow of a code, unless it is unknown or expired or the verifier is that of another flow. */
export const redeemed = <F extends TakenFlow<object, { readonly challenge: string }>>(
  taken: Option.Option<F>,
  verifier: string
): F | undefined =>
  Option.getOrUndefined(
    Option.filter(
      taken,
      ({ data, isExpired }) => !isExpired && isVerifierOf(data.challenge, verifier)
    )
  )
