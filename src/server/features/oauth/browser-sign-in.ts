/**
 * Sign-in by browser redirect. Each step works once: the start, the callback within ten minutes and the
 * code exchange within one minute.
 *
 * The callback yields only a code, which is useless without the PKCE verifier of the client that
 * started the flow. So an attacker gains nothing by luring a victim into finishing a foreign sign-in or
 * link. Only the exchange creates and links players.
 */
import { Context, Effect, Layer, Option, Result } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import { InvalidCode, ProviderNotConfigured } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import type { StartRequest } from "#rpc/oauth/sign-in"
import { makeTransaction } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import { type Keep, SpentResponses } from "#server/platform/spent-responses"
import { makeRedirectUrlCheck } from "./redirect-urls.ts"
import { Sessions } from "../sessions/service.ts"
import type { ProviderSignIn } from "./clients.ts"
import { type FlowContext, FlowStore } from "./flow-store.ts"
import { ProviderGrants } from "./grants.ts"
import { IdentitySignIn } from "./identity-sign-in.ts"
import { KeptSignIn, keptSignIn, repeatSignIn } from "./kept-sign-in.ts"
import type { ProviderProfile } from "./profiles.ts"
import { makeRedirectFlow, redeemed } from "./redirect-flow.ts"
import { callbackUrlOf, Providers } from "./providers.ts"

/** A request to start a flow. `path` locates `redirectUrl` in the request, for error details. */
export interface Start extends Pick<FlowContext, "provider" | "playerId" | "sessionId"> {
  readonly environment: EnvironmentCaller
  readonly request: StartRequest
  readonly path: string
}

/** A code with the verifier of the client that started its flow. */
interface SignInCode {
  readonly code: string
  readonly verifier: string
}

/** Runs OAuth flows that redirect a browser. */
export class BrowserSignIn extends Context.Service<BrowserSignIn>()(
  "server/features/oauth/browser-sign-in/BrowserSignIn",
  {
    make: Effect.gen(function* () {
      const players = yield* makePlayers
      const flow = yield* makeRedirectFlow(players)
      const checkRedirectUrl = yield* makeRedirectUrlCheck
      return {
        /**
         * Starts a flow and returns the provider's URL. `ProviderNotConfigured` implies a valid
         * `redirectUrl`.
         */
        start: Effect.fn("BrowserSignIn.start")(function* (start: Start) {
          const { environment, path, playerId, provider, request, sessionId } = start
          const { environmentId } = environment
          yield* checkRedirectUrl(environment, request.redirectUrl, path)
          const context = { environmentId, provider, playerId, sessionId }
          const client = yield* players.clientOf(context)
          if (client === undefined) return yield* new ProviderNotConfigured()
          return yield* flow.start(client, context, request)
        }),
        /** Handles the callback and returns the URL to redirect to; none if the state is unknown. */
        callback: Effect.fn("BrowserSignIn.callback")(flow.callback),
        /** Exchanges the code of a callback for a session. A repeat with the same key gets it again. */
        exchange: yield* makeExchange
      }
    })
  }
) {
  static readonly layer = Layer.effect(BrowserSignIn, this.make)
}

/**
 * Completes a profile with what Apple sent at an earlier callback whose code was never exchanged: Apple
 * sends the name once.
 */
const makeComplete = Effect.map(FlowStore, (flows) =>
  Effect.fnUntraced(function* (context: FlowContext, profile: ProviderProfile) {
    if (context.provider !== "apple") return profile
    const { subject } = profile
    const kept = Option.getOrUndefined(yield* flows.takeDetails(context, subject))
    const name = profile.name ?? kept?.name ?? null
    const { email, emailVerified } = profile.email === null ? (kept ?? profile) : profile
    // This code may be lost, too.
    if (name !== null) yield* flows.keepDetails(context, subject, { name, email, emailVerified })
    return { ...profile, name, email, emailVerified }
  })
)

/** Players of an environment as the subject of the flow. */
const makePlayers = Effect.gen(function* () {
  const complete = yield* makeComplete
  const flows = yield* FlowStore
  const grants = yield* ProviderGrants
  const identitySignIn = yield* IdentitySignIn
  const providers = yield* Providers
  const { baseUrl } = yield* Settings
  return {
    tenantOf: ({ environmentId }: FlowContext) => environmentId,
    annotationsOf: ({ environmentId }: FlowContext) => ({ environmentId }),
    putState: flows.saveState,
    takeState: flows.takeState,
    clientOf: Effect.fnUntraced(function* ({ environmentId, provider }: FlowContext) {
      const credentials = Option.getOrUndefined(
        yield* providers.credentials(environmentId, provider)
      )
      const callbackUrl = callbackUrlOf(baseUrl, provider)
      return credentials && { provider, credentials, callbackUrl }
    }),
    putResult: Effect.fnUntraced(function* (
      context: FlowContext,
      { profile: sent, revocableToken }: ProviderSignIn,
      challenge: string
    ) {
      const error = yield* identitySignIn.precheck(context, sent)
      if (error !== undefined) return yield* Effect.fail(error)
      const profile = yield* complete(context, sent)
      const { environmentId, provider } = context
      const grantSealed = yield* grants.seal(environmentId, provider, revocableToken)
      return yield* flows.saveResult(context, { challenge, profile, grantSealed })
    })
  }
})

const makeExchange = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const flows = yield* FlowStore
  const identitySignIn = yield* IdentitySignIn
  const providers = yield* Providers
  const sessions = yield* Sessions
  const transaction = yield* makeTransaction

  const spend = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    { code, verifier }: SignInCode,
    keep: Keep<KeptSignIn>
  ) {
    const flow = redeemed(yield* flows.takeResult(environmentId, code), verifier)
    // A value, so that the transaction commits: a wrong verifier spends the code.
    if (flow === undefined) return Result.fail(new InvalidCode())
    // It may have been disabled since the callback.
    yield* providers.requireEnabled(environmentId, flow.provider)
    const session = yield* identitySignIn.signIn(flow, flow.data)
    yield* flows.takeDetails(flow, flow.data.profile.subject)
    yield* keep(keptSignIn(session), session.player.id)
    return Result.succeed(session)
  }, transaction)

  return Effect.fn("BrowserSignIn.exchange")(function* (
    environmentId: EnvironmentId,
    request: SignInCode,
    key: string | undefined
  ) {
    const path = "POST /v1/auth/oauth/exchange"
    const spending = { tenant: environmentId, path, secret: request.code, body: request, key }
    return yield* responses.once(spending, KeptSignIn, {
      spend: (keep) => Effect.flatMap(spend(environmentId, request, keep), Effect.fromResult),
      repeat: repeatSignIn(sessions, environmentId, new InvalidCode())
    })
  })
})
