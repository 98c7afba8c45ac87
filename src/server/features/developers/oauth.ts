/**
 * OAuth sign-in of developers. Each step works once: the start, the callback within ten minutes and the
 * exchange within one minute. The callback yields only a code, which is useless without the PKCE
 * verifier of the page that started the flow. Accounts change only at the exchange.
 */
import { Context, DateTime, Effect, Layer, Option, Redacted, Result, Schema } from "effect"
import type { DeveloperCaller } from "#rpc/auth"
import { redirectUrlAllowed } from "#rpc/config-document/auth"
import {
  type EmailTaken,
  type IdentityAlreadyLinked,
  InvalidCode,
  type InvalidCredentials,
  type InvalidInviteCode,
  type InvalidRequest,
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
import type { SignInError } from "#rpc/oauth/sign-in"
import { DeveloperId, DeveloperSessionId } from "#rpc/ids"
import { DeveloperRepository } from "#sql/developers/repository"
import { makeTransaction } from "#server/platform/database"
import { invalidField } from "#server/platform/invalid-request"
import { Settings } from "#server/platform/settings/settings"
import { type Keep, type RepeatError, SpentResponses } from "#server/platform/spent-responses"
import type { ProviderSignIn } from "../oauth/clients.ts"
import type { AuthorizationState } from "../oauth/flow-store.ts"
import { makeRedirectFlow, redeemed } from "../oauth/redirect-flow.ts"
import { KeptSession, keptSession, makeRepeatSession, spendingOf } from "./kept-session.ts"
import { type DeveloperFlow, type DeveloperFlows, makeDeveloperFlows } from "./oauth-flows.ts"
import { makeIdentities } from "./oauth-identities.ts"
import { unauthorized } from "./sessions.ts"

type ExchangeError =
  | EmailTaken
  | IdentityAlreadyLinked
  | InvalidCode
  | InvalidCredentials
  | InvalidInviteCode
  | InvalidRequest
  | InviteCodeUsed
  | InviteLimitReached
  | RepeatError
  | SignupsClosed
  | Unauthorized

/** Runs the OAuth flows of developers. */
export class DeveloperOAuth extends Context.Service<DeveloperOAuth>()(
  "server/features/developers/oauth/DeveloperOAuth",
  {
    make: Effect.gen(function* () {
      const flows = yield* makeDeveloperFlows
      const { developerClients } = yield* Settings
      return {
        /** The providers with which developers can sign in. */
        providers: DeveloperProvider.literals.filter(
          (provider) => developerClients[provider] !== undefined
        ),
        ...(yield* makeRedirect(flows)),
        exchange: yield* makeExchange(flows)
      }
    })
  }
) {
  static readonly layer = Layer.effect(DeveloperOAuth, this.make)
}

const notConfigured = new ProviderNotConfigured({
  message: "Developers cannot sign in with this provider: the operator has set no client for it."
})

const invalidRedirectUrl = invalidField(
  "redirectUrl",
  "Expected a page of this service, or of this machine (http://localhost:<port>/...)"
)

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

/** Developers as the subject of the flow. */
const makeDevelopers = Effect.fnUntraced(function* ({ results, states }: DeveloperFlows) {
  const { precheck } = yield* makeIdentities
  const { baseUrl, developerClients } = yield* Settings
  return {
    tenantOf: () => "developers",
    annotationsOf: () => ({}),
    putState: Effect.fnUntraced(function* (flow: DeveloperFlow, data: AuthorizationState) {
      return Option.getOrUndefined(yield* states.put(flow, data)) ?? (yield* unauthorized)
    }),
    takeState: (provider: DeveloperProvider, state: string) =>
      Effect.map(
        states.take(state),
        Option.filter((flow) => flow.provider === provider)
      ),
    clientOf: ({ provider }: DeveloperFlow) => {
      const client = developerClients[provider]
      if (client === undefined) return Effect.succeed(undefined)
      const { clientId } = client
      const callbackUrl = `${baseUrl}/v1/developers/oauth/${provider}/callback`
      const credentials = { clientId, clientSecret: Redacted.value(client.clientSecret) }
      return Effect.succeed({ provider, credentials, callbackUrl })
    },
    putResult: Effect.fnUntraced(function* (
      flow: DeveloperFlow,
      { profile }: ProviderSignIn,
      challenge: string
    ) {
      const fail = (error: SignInError) => Effect.fail(error)
      const error = yield* precheck(flow, profile)
      if (error !== undefined) return yield* fail(error)
      const code = yield* results.put(flow, { challenge, profile })
      return Option.isSome(code) ? code.value : yield* fail("expired")
    })
  }
})

const makeRedirect = Effect.fnUntraced(function* (flows: DeveloperFlows) {
  const isOwnPage = yield* makeIsOwnPage
  const developers = yield* makeDevelopers(flows)
  const { callback, start } = yield* makeRedirectFlow(developers)
  return {
    /** Handles the callback and returns the URL to redirect to; none if the state is unknown. */
    callback: Effect.fn("DeveloperOAuth.callback")(callback),
    /** Starts a flow and returns the provider's URL. */
    start: Effect.fn("DeveloperOAuth.start")(function* (
      provider: DeveloperProvider,
      caller: DeveloperCaller | undefined,
      request: DeveloperStart
    ) {
      const { intent = "login", redirectUrl } = request
      if (intent !== "login" && caller === undefined) return yield* unauthorized
      const session = intent === "login" ? undefined : caller
      const { developerId = null, sessionId = null } = session ?? {}
      const flow = { provider, intent, developerId, sessionId }
      const client = yield* developers.clientOf(flow)
      if (client === undefined) return yield* notConfigured
      if (!isOwnPage(redirectUrl)) return yield* invalidRedirectUrl
      return yield* start(client, flow, request)
    })
  }
})

/** What a repeated exchange needs. */
const Kept = Schema.Union([
  Schema.Struct({ intent: Schema.Literal("login"), session: KeptSession }),
  Schema.Struct({
    intent: Schema.Literal("link"),
    developerId: DeveloperId,
    sessionId: Schema.NullOr(DeveloperSessionId)
  }),
  Schema.Struct({
    intent: Schema.Literal("reauth"),
    reauthToken: Schema.String,
    expiresAt: Schema.String
  })
])
const KeptExchange = Schema.Struct({ provider: DeveloperProvider, kept: Kept })
type KeepExchange = Keep<typeof KeptExchange.Type>

/** Takes the code and does what the flow is for, or does neither. */
const makeSpend = Effect.fnUntraced(function* ({ results }: DeveloperFlows) {
  const { link, prove, signIn } = yield* makeIdentities
  const transaction = yield* makeTransaction
  return Effect.fnUntraced(function* (
    { code, verifier, ...invitation }: DeveloperExchange,
    keep: KeepExchange
  ): Effect.fn.Return<Result.Result<DeveloperExchanged, InvalidCode>, ExchangeError> {
    const taken = redeemed(yield* results.take(code), verifier)
    // A value, so that the transaction commits: a wrong verifier spends the code.
    if (taken === undefined) return Result.fail(new InvalidCode())
    const { data, ...flow } = taken
    const { intent, provider } = flow
    if (intent === "login") {
      const signedIn = yield* signIn(provider, data.profile, invitation)
      yield* keep({ provider, kept: { intent, session: keptSession(signedIn) } })
      return Result.succeed({ intent, provider, ...signedIn })
    }
    if (intent === "link") {
      const { developerId, identities } = yield* link(flow, data.profile)
      yield* keep({ provider, kept: { intent, developerId, sessionId: flow.sessionId } })
      return Result.succeed({ intent, provider, identities })
    }
    const proof = yield* prove(flow, data.profile)
    yield* keep({ provider, kept: { intent, ...proof } })
    return Result.succeed({ intent, provider, ...proof })
  }, transaction)
})

/** Redeems the code of a callback. A repeat with the same key gets the result again. */
const makeExchange = Effect.fnUntraced(function* (flows: DeveloperFlows) {
  const responses = yield* SpentResponses
  const { list } = yield* makeIdentities
  const repository = yield* DeveloperRepository
  const repeatSession = (yield* makeRepeatSession)(new InvalidCode())
  const spend = yield* makeSpend(flows)
  const repeat = Effect.fnUntraced(function* ({
    kept,
    provider
  }: typeof KeptExchange.Type): Effect.fn.Return<DeveloperExchanged, InvalidCode> {
    if (kept.intent === "login") {
      return { intent: "login", provider, ...(yield* repeatSession(kept.session)) }
    }
    if (kept.intent === "reauth") return { provider, ...kept }
    const { developerId, sessionId } = kept
    const now = yield* DateTime.now
    // The list may have changed since, and is only for the session that has linked.
    const isOpen = sessionId !== null && (yield* repository.isSessionOpen({ sessionId, now }))
    if (!isOpen) return yield* new InvalidCode()
    return { intent: "link", provider, identities: yield* list(developerId) }
  })
  return Effect.fn("DeveloperOAuth.exchange")(function* (
    request: DeveloperExchange,
    key: string | undefined
  ) {
    const path = "POST /v1/developers/oauth/exchange"
    return yield* responses.once(spendingOf(path, request.code, request, key), KeptExchange, {
      spend: (keep) => Effect.flatMap(spend(request, keep), Effect.fromResult),
      repeat
    })
  })
})
