/**
 * OAuth sign-in of developers. Each step works once: the start, the callback within ten minutes and the
 * exchange within one minute. The callback yields only a code, which is useless without the PKCE
 * verifier of the page that started the flow. Accounts change only at the exchange.
 */
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperCaller } from "#rpc/auth"
import { redirectUrlAllowed } from "#rpc/config-document/auth"
import {
  type EmailTaken,
  type IdentityAlreadyLinked,
  InvalidCode,
  type InvalidCredentials,
  type InvalidInviteCode,
  InvalidRequest,
  type InviteCodeUsed,
  type InviteLimitReached,
  ProviderNotConfigured,
  type SignupsClosed,
  type Unauthorized
} from "#rpc/errors/codes"
import {
  type DeveloperExchange,
  type DeveloperExchanged,
  DeveloperProvider,
  type DeveloperStart
} from "#rpc/oauth/developers"
import type { ProviderReturn, SignInError } from "#rpc/oauth/sign-in"
import { randomSecret } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { Tenant } from "#server/platform/tenant"
import { type AuthorizationProofs, ProviderClients } from "../oauth/clients.ts"
import { isVerifierOf, makeReadReturn, redirectWith } from "../oauth/provider-return.ts"
import { type DeveloperFlows, makeDeveloperFlows } from "./oauth-flows.ts"
import { makeIdentities } from "./oauth-identities.ts"
import { unauthorized } from "./sessions.ts"

export type ExchangeError =
  | EmailTaken
  | IdentityAlreadyLinked
  | InvalidCode
  | InvalidCredentials
  | InvalidInviteCode
  | InvalidRequest
  | InviteCodeUsed
  | InviteLimitReached
  | SignupsClosed
  | Unauthorized

/** Runs the OAuth flows of developers. */
export class DeveloperOAuth extends Context.Service<
  DeveloperOAuth,
  {
    /** The providers with which developers can sign in. */
    readonly providers: ReadonlyArray<DeveloperProvider>
    /** Starts a flow and returns the provider's URL. */
    readonly start: (
      provider: DeveloperProvider,
      caller: DeveloperCaller | undefined,
      request: DeveloperStart
    ) => Effect.Effect<string, InvalidRequest | ProviderNotConfigured | Unauthorized>
    /** Handles the callback and returns the URL to redirect to; none if the state is unknown. */
    readonly callback: (
      provider: DeveloperProvider,
      returned: ProviderReturn
    ) => Effect.Effect<Option.Option<string>>
    /** Redeems the code of a callback. */
    readonly exchange: (
      request: DeveloperExchange
    ) => Effect.Effect<DeveloperExchanged, ExchangeError>
  }
>()("server/features/developers/oauth/DeveloperOAuth") {
  static readonly layer = Layer.effect(
    DeveloperOAuth,
    Effect.gen(function* () {
      const flows = yield* makeDeveloperFlows
      const { developerClients } = yield* Settings
      return DeveloperOAuth.of({
        providers: DeveloperProvider.literals.filter(
          (provider) => developerClients[provider] !== undefined
        ),
        start: yield* makeStart(flows),
        callback: yield* makeCallback(flows),
        exchange: yield* makeExchange(flows)
      })
    })
  )
}

/** The service's client at a provider; undefined without credentials. */
const makeClientOf = Effect.map(
  Settings,
  ({ baseUrl, developerClients }) =>
    (provider: DeveloperProvider) => {
      const client = developerClients[provider]
      if (client === undefined) return undefined
      const { clientId } = client
      const callbackUrl = `${baseUrl}/v1/developers/oauth/${provider}/callback`
      const credentials = { clientId, clientSecret: Redacted.value(client.clientSecret) }
      return { provider, credentials, callbackUrl }
    }
)

const notConfigured = new ProviderNotConfigured({
  message: "Developers cannot sign in with this provider: the operator has set no client for it."
})

const invalidRedirectUrl = new InvalidRequest({
  details: {
    issues: [
      {
        path: "redirectUrl",
        message: "Expected a page of this service, or of this machine (http://localhost:<port>/...)"
      }
    ]
  }
})

/**
 * Whether a flow may return to a page: the dashboard on a port of the service's host, or a tool on the
 * developer's machine. Any other page could phish for the code.
 */
const makeIsOwnPage = Effect.map(Settings, ({ baseUrl }) => {
  const own = new URL(baseUrl)
  return (redirectUrl: string): boolean => {
    const url = URL.parse(redirectUrl)
    const isOwnHost = url?.hostname === own.hostname && url.protocol === own.protocol
    const redirectUrls = [`${isOwnHost ? url.origin : own.origin}/*`]
    return redirectUrlAllowed({ auth: { redirectUrls } }, redirectUrl, { development: true })
  }
})

const makeStart = Effect.fnUntraced(function* ({ states }: DeveloperFlows) {
  const clientOf = yield* makeClientOf
  const clients = yield* ProviderClients
  const isOwnPage = yield* makeIsOwnPage
  const random = yield* SecureRandom.SecureRandom
  return Effect.fn("DeveloperOAuth.start")(
    function* (
      provider: DeveloperProvider,
      caller: DeveloperCaller | undefined,
      { challenge, intent = "login", redirectUrl }: DeveloperStart
    ) {
      if (intent !== "login" && caller === undefined) return yield* unauthorized
      const client = clientOf(provider)
      if (client === undefined) return yield* notConfigured
      if (!isOwnPage(redirectUrl)) return yield* invalidRedirectUrl
      const proofs: AuthorizationProofs = {
        nonce: yield* randomSecret,
        verifier: yield* randomSecret
      }
      const session = intent === "login" ? undefined : caller
      const { developerId = null, sessionId = null } = session ?? {}
      const flow = { provider, intent, developerId, sessionId }
      const state = yield* states.put(flow, { redirectUrl, challenge, ...proofs })
      if (Option.isNone(state)) return yield* unauthorized
      return yield* clients.authorizeUrl(client, { state: state.value, ...proofs })
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )
})

const makeCallback = Effect.fnUntraced(function* ({ results, states }: DeveloperFlows) {
  const clientOf = yield* makeClientOf
  const { precheck } = yield* makeIdentities
  const readReturn = yield* makeReadReturn
  return Effect.fn("DeveloperOAuth.callback")(function* (
    provider: DeveloperProvider,
    returned: ProviderReturn
  ) {
    const found = yield* states.take(returned.state ?? "")
    if (Option.isNone(found) || found.value.provider !== provider) return Option.none()
    const { data, isExpired, ...flow } = found.value
    const { challenge, redirectUrl } = data
    const issueCode = Effect.gen(function* () {
      const fail = (error: SignInError) => Effect.fail(error)
      if (isExpired) return yield* fail("expired")
      const client = clientOf(provider)
      if (client === undefined) return yield* fail("provider_not_configured")
      const { profile } = yield* readReturn(client, returned, data)
      const error = yield* precheck(flow, profile)
      if (error !== undefined) return yield* fail(error)
      const code = yield* results.put(flow, { challenge, profile })
      return Option.isSome(code) ? code.value : yield* fail("expired")
    })
    return yield* issueCode.pipe(
      Effect.annotateLogs({ provider }),
      Effect.provideService(Tenant, "developers"),
      Effect.match({
        onSuccess: (code) => redirectWith(redirectUrl, { code }),
        onFailure: (error) => redirectWith(redirectUrl, { error })
      }),
      Effect.asSome
    )
  })
})

const makeExchange = Effect.fnUntraced(function* ({ results }: DeveloperFlows) {
  const { link, prove, signIn } = yield* makeIdentities
  return Effect.fn("DeveloperOAuth.exchange")(function* ({
    code,
    verifier,
    ...invitation
  }: DeveloperExchange) {
    const taken = Option.getOrUndefined(yield* results.take(code))
    if (taken === undefined || taken.isExpired) return yield* new InvalidCode()
    const { data, ...flow } = taken
    if (!isVerifierOf(data.challenge, verifier)) return yield* new InvalidCode()
    const { intent, provider } = flow
    if (intent === "login") {
      return { intent, provider, ...(yield* signIn(provider, data.profile, invitation)) }
    }
    if (intent === "link") {
      return { intent, provider, identities: yield* link(flow, data.profile) }
    }
    return { intent, provider, ...(yield* prove(flow, data.profile)) }
  })
})
