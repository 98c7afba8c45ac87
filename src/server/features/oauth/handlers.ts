/** `/v1/auth/oauth` (spec section 4.1): external sign-in as browsers and apps call it. */
import { Effect, Layer, Option } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentEnvironment, type PlayerCaller, PlayerIfAny } from "#rpc/auth"
import { Unauthorized } from "#rpc/errors/codes"
import type { Provider } from "#rpc/identities"
import { type Throttle, throttles as limits } from "#rpc/limits"
import type { ProviderReturn } from "#rpc/oauth/sign-in"
import { clientAddress } from "#server/platform/client-address"
import { Settings } from "#server/platform/settings/settings"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { NativeSignIn } from "./native-sign-in.ts"
import { expiredPage } from "./pages.ts"
import { redirectWith, BrowserSignIn } from "./browser-sign-in.ts"

/** The address holds a code, or leads to where one is made: it is nobody else's. */
const leadTo = (address: string) =>
  HttpServerResponse.redirect(address, { headers: { "referrer-policy": "no-referrer" } })

const makeWithin = Effect.gen(function* () {
  const throttles = yield* Throttles
  const { trustedProxies } = yield* Settings
  /** Keeps an address within the pace of what it does. */
  return (throttle: Throttle, what: string, request: HttpServerRequest.HttpServerRequest) =>
    takeToken(throttles, throttle, `${what}:${clientAddress(request, trustedProxies)}`)
})

/** To whom an identity is to be linked, if to anybody. */
const linkTo = (player: PlayerCaller | undefined) => ({
  playerId: player?.playerId ?? null,
  sessionId: player?.sessionId ?? null
})

interface Asked {
  readonly params: { readonly provider: Provider }
  readonly request: HttpServerRequest.HttpServerRequest
}

const Handlers = HttpApiBuilder.group(
  Api,
  "oauth",
  Effect.fn(function* (handlers) {
    const native = yield* NativeSignIn
    const signIn = yield* BrowserSignIn
    const within = yield* makeWithin

    const back = Effect.fnUntraced(function* (
      { params, request }: Asked,
      returned: ProviderReturn
    ) {
      yield* within(limits.oauthReturnPerAddress, "oauthReturn", request)
      const address = yield* signIn.return(params.provider, returned)
      return Option.match(address, { onNone: () => expiredPage, onSome: leadTo })
    })

    return handlers.handleAll({
      start: Effect.fnUntraced(function* ({ params: { provider }, payload, request }) {
        const environment = yield* CurrentEnvironment
        const player = yield* PlayerIfAny
        yield* within(
          limits.oauthStartPerAddress,
          `oauthStart:${environment.environmentId}`,
          request
        )
        const path = "redirectUrl"
        const start = { environment, provider, ...linkTo(player), path, request: payload }
        return { url: yield* signIn.start(start) }
      }),
      startByLink: Effect.fnUntraced(function* ({ params: { provider }, query, request }) {
        const environment = yield* CurrentEnvironment
        yield* within(
          limits.oauthStartPerAddress,
          `oauthStart:${environment.environmentId}`,
          request
        )
        const path = "query.redirectUrl"
        const start = { environment, provider, ...linkTo(undefined), path, request: query }
        const address = yield* signIn
          .start(start)
          .pipe(
            Effect.catchTag("provider_not_configured", ({ _tag }) =>
              Effect.succeed(redirectWith(query.redirectUrl, { error: _tag }))
            )
          )
        return leadTo(address)
      }),
      callback: (asked) => back(asked, asked.query),
      callbackForm: (asked) => back(asked, asked.payload),
      exchange: Effect.fnUntraced(function* ({ payload: { code, verifier }, request }) {
        const { environmentId } = yield* CurrentEnvironment
        yield* within(limits.oauthExchangePerAddress, `oauthExchange:${environmentId}`, request)
        return yield* signIn.exchange(environmentId, code, verifier)
      }),
      native: Effect.fnUntraced(function* ({ params: { provider }, payload, request }) {
        const { environmentId } = yield* CurrentEnvironment
        const player = yield* PlayerIfAny
        yield* within(limits.oauthNativePerAddress, `oauthNative:${environmentId}`, request)
        const isLink = payload.link === true
        if (isLink && player === undefined) return yield* new Unauthorized()
        const whom = linkTo(isLink ? player : undefined)
        return yield* native.signIn({ environmentId, provider, ...whom }, payload)
      })
    })
  })
)

/** External sign-in, on what it needs to stand alone. */
export const OAuthHttp = Handlers.pipe(Layer.provide([NativeSignIn.layer, BrowserSignIn.layer]))
