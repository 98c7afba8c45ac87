/**
 * External sign-in by the browser (spec sections 3, 4.1 and 5, rules 9 to 11; decisions 3.2.6). Each
 * step is taken once: the start, the return from the provider within ten minutes, the exchange within
 * one. The provider's answer leads to no more than a code, and only the client that began has the
 * verifier of its challenge: whoever is lured into finishing the sign-in, or the linking, of another
 * gets nothing by it and gives nothing away. Players are made and linked at the exchange.
 */
import { timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { EnvironmentCaller } from "#rpc/auth"
import {
  type IdentityAlreadyLinked,
  InvalidCode,
  type InvalidRequest,
  type PlayerBanned,
  type PlayerNotFound,
  type ProviderDisabled,
  ProviderNotConfigured,
  type SessionRevoked
} from "#rpc/errors/codes"
import type { Provider } from "#rpc/identities"
import type { EnvironmentId } from "#rpc/ids"
import {
  fragments,
  type ProviderReturn,
  type ProviderSession,
  type SignInError,
  type StartRequest
} from "#rpc/oauth/sign-in"
import { randomSecret, sha256 } from "#server/platform/secrets"
import { makeRedirectUrlCheck } from "../config/redirect-urls.ts"
import { ProviderClients } from "./clients.ts"
import {
  type AuthorizationState,
  FlowStore,
  type TakenFlow,
  type FlowContext
} from "./flow-store.ts"
import { ProviderGrants } from "./grants.ts"
import { IdentitySignIn } from "./identity-sign-in.ts"
import { Providers } from "./providers.ts"

/** A start: whose, with what, and where `redirectUrl` stands in the request. */
export interface Start extends Pick<FlowContext, "provider" | "playerId" | "sessionId"> {
  readonly environment: EnvironmentCaller
  readonly request: StartRequest
  readonly path: string
}

type StartError = ProviderDisabled | ProviderNotConfigured | InvalidRequest

/** Signs people in by their browser. */
export class BrowserSignIn extends Context.Service<
  BrowserSignIn,
  {
    /** The address of the provider. With 409 the return address is known to be good. */
    readonly start: (start: Start) => Effect.Effect<string, StartError>
    /** Where the browser goes from here; none when nobody began what has come back. */
    readonly return: (
      provider: Provider,
      returned: ProviderReturn
    ) => Effect.Effect<Option.Option<string>>
    readonly exchange: (
      environmentId: EnvironmentId,
      code: string,
      verifier: string
    ) => Effect.Effect<
      ProviderSession,
      InvalidCode | IdentityAlreadyLinked | PlayerBanned | PlayerNotFound | SessionRevoked
    >
  }
>()("server/features/oauth/browser-sign-in/BrowserSignIn") {
  static readonly layer = Layer.effect(
    BrowserSignIn,
    Effect.gen(function* () {
      return BrowserSignIn.of({
        start: yield* makeStart,
        return: yield* makeReturn,
        exchange: yield* makeExchange
      })
    })
  )
}

/** An address with the outcome in its fragment, which browsers send to nobody. */
export const redirectWith = (
  redirectUrl: string,
  outcome: { readonly code: string } | { readonly error: SignInError }
): string =>
  "code" in outcome
    ? `${redirectUrl}#${fragments.code}=${outcome.code}`
    : `${redirectUrl}#${fragments.error}=${outcome.error}`

const makeStart = Effect.gen(function* () {
  const clients = yield* ProviderClients
  const allowReturn = yield* makeRedirectUrlCheck
  const providers = yield* Providers
  const steps = yield* FlowStore
  const random = yield* SecureRandom.SecureRandom
  return Effect.fn("SignIn.start")(
    function* ({ environment, path, playerId, provider, request, sessionId }: Start) {
      const { environmentId } = environment
      yield* providers.enabled(environmentId, provider)
      const { challenge, redirectUrl } = request
      yield* allowReturn(environment, redirectUrl, path)
      const credentials = yield* providers.credentials(environmentId, provider)
      if (Option.isNone(credentials)) return yield* new ProviderNotConfigured()
      const proofs = { nonce: yield* randomSecret, verifier: yield* randomSecret }
      const state = yield* randomSecret
      const whose = { environmentId, provider, playerId, sessionId }
      yield* steps.saveState(whose, state, { redirectUrl, challenge, ...proofs })
      return yield* clients.authorizeUrl(provider, credentials.value, { state, ...proofs })
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )
})

/** A person who said no, as OAuth and Apple have it. */
const refusals = new Set(["access_denied", "user_cancelled_authorize"])

const makeReturn = Effect.gen(function* () {
  const clients = yield* ProviderClients
  const entrance = yield* IdentitySignIn
  const grants = yield* ProviderGrants
  const providers = yield* Providers
  const steps = yield* FlowStore

  /** The code for who has come back, or why there is none. */
  const codeOf = Effect.fnUntraced(function* (
    { carried, ...whose }: TakenFlow<AuthorizationState>,
    returned: ProviderReturn
  ) {
    const { environmentId, provider } = whose
    const fail = (error: SignInError) => Effect.fail(error)
    if (whose.isLate) return yield* fail("expired")
    if (refusals.has(returned.error ?? "")) return yield* fail("access_denied")
    if (returned.error !== undefined) {
      const known = /^[\w.-]{1,64}$/.test(returned.error) ? returned.error : "unknown"
      yield* Effect.logWarning("A sign-in provider returned an error", known)
      return yield* fail("provider_error")
    }
    const credentials = yield* providers.credentials(environmentId, provider)
    if (Option.isNone(credentials)) return yield* fail("provider_not_configured")
    const { person, permission } = yield* clients
      .exchangeCode(provider, credentials.value, returned, carried)
      .pipe(
        Effect.tapError(({ reason }) =>
          Effect.logWarning("A sign-in failed at the provider", reason)
        ),
        Effect.mapError(() => "provider_error" as const)
      )
    const refusal = yield* entrance.precheck(whose, person)
    if (refusal !== undefined) return yield* fail(refusal)
    const grantSealed = yield* grants.seal(environmentId, provider, permission)
    const { challenge } = carried
    return yield* steps.saveResult(whose, { challenge, person, grantSealed })
  })

  return Effect.fn("SignIn.return")(function* (provider: Provider, returned: ProviderReturn) {
    const found = yield* steps.takeState(provider, returned.state ?? "")
    if (Option.isNone(found)) return Option.none()
    const taken = found.value
    const { environmentId } = taken
    const { redirectUrl } = taken.carried
    return yield* codeOf(taken, returned).pipe(
      Effect.annotateLogs({ environmentId, provider }),
      Effect.match({
        onSuccess: (code) => redirectWith(redirectUrl, { code }),
        onFailure: (error) => redirectWith(redirectUrl, { error })
      }),
      Effect.asSome
    )
  })
})

/** Whether this is the verifier of a challenge (S256), in constant time. */
const isVerifierOf = (challenge: string, verifier: string): boolean => {
  const expected = Buffer.from(challenge)
  const actual = Buffer.from(sha256(verifier))
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}

const makeExchange = Effect.gen(function* () {
  const entrance = yield* IdentitySignIn
  const steps = yield* FlowStore
  return Effect.fn("SignIn.exchange")(function* (
    environmentId: EnvironmentId,
    code: string,
    verifier: string
  ) {
    const taken = Option.getOrUndefined(yield* steps.takeResult(environmentId, code))
    if (taken === undefined || taken.isLate) return yield* new InvalidCode()
    if (!isVerifierOf(taken.carried.challenge, verifier)) return yield* new InvalidCode()
    return yield* entrance.signIn(taken, taken.carried)
  })
})
