/** `/v1/auth/oauth`: sign-in with a provider, by browser redirect or with a native id token. */
import { Effect, Layer, Option, Schema } from "effect"
import { HttpRouter, type HttpServerRequest } from "effect/http"
import { Api } from "#rpc/api"
import { CurrentEnvironment, type PlayerCaller, OptionalPlayer } from "#rpc/auth"
import { Unauthorized } from "#rpc/errors/codes"
import { Provider } from "#rpc/identities"
import { oauthThrottles } from "#rpc/oauth/limits"
import { ProviderGate, type ProviderReturn } from "#rpc/oauth/sign-in"
import { apiGroup } from "#server/platform/api-group"
import { makeThrottleAddress } from "#server/platform/throttle-guard"
import { BrowserSignIn } from "./browser-sign-in.ts"
import { NativeSignIn } from "./native-sign-in.ts"
import { expiredPage, redirectTo } from "./pages.ts"
import { Providers } from "./providers.ts"
import { redirectWith } from "./redirect-flow.ts"

/** The player and session to link the identity to; nulls for a sign-in. */
const linkTo = (player: PlayerCaller | undefined) => ({
  playerId: player?.playerId ?? null,
  sessionId: player?.sessionId ?? null
})

interface CallbackRequest {
  readonly params: { readonly provider: Provider }
  readonly request: HttpServerRequest.HttpServerRequest
}

const Handlers = apiGroup(
  Api,
  "oauth",
  Effect.fn(function* (handlers) {
    const browser = yield* BrowserSignIn
    const native = yield* NativeSignIn
    const throttleAddress = yield* makeThrottleAddress

    const callback = Effect.fnUntraced(function* (
      { params, request }: CallbackRequest,
      returned: ProviderReturn
    ) {
      yield* throttleAddress(oauthThrottles.returnPerAddress, "oauthReturn", request)
      const url = yield* browser.callback(params.provider, returned)
      return Option.match(url, { onNone: () => expiredPage, onSome: redirectTo })
    })

    return handlers.handleAll({
      start: Effect.fnUntraced(function* ({ params: { provider }, payload, request }) {
        const environment = yield* CurrentEnvironment
        const player = yield* OptionalPlayer
        yield* throttleAddress(
          oauthThrottles.startPerAddress,
          `oauthStart:${environment.environmentId}`,
          request
        )
        const path = "redirectUrl"
        const start = { environment, provider, ...linkTo(player), path, request: payload }
        return { url: yield* browser.start(start) }
      }),
      startByLink: Effect.fnUntraced(function* ({ params: { provider }, query, request }) {
        const environment = yield* CurrentEnvironment
        yield* throttleAddress(
          oauthThrottles.startPerAddress,
          `oauthStart:${environment.environmentId}`,
          request
        )
        const path = "query.redirectUrl"
        const start = { environment, provider, ...linkTo(undefined), path, request: query }
        const url = yield* browser
          .start(start)
          .pipe(
            Effect.catchTag("provider_not_configured", ({ _tag }) =>
              Effect.succeed(redirectWith(query.redirectUrl, { error: _tag }))
            )
          )
        return redirectTo(url)
      }),
      callback: (request) => callback(request, request.query),
      callbackForm: (request) => callback(request, request.payload),
      exchange: Effect.fnUntraced(function* ({ headers, payload, request }) {
        const { environmentId } = yield* CurrentEnvironment
        const action = `oauthExchange:${environmentId}`
        yield* throttleAddress(oauthThrottles.exchangePerAddress, action, request)
        return yield* browser.exchange(environmentId, payload, headers["idempotency-key"])
      }),
      native: Effect.fnUntraced(function* ({ headers, params: { provider }, payload, request }) {
        const { environmentId } = yield* CurrentEnvironment
        const player = yield* OptionalPlayer
        yield* throttleAddress(
          oauthThrottles.nativePerAddress,
          `oauthNative:${environmentId}`,
          request
        )
        const isLink = payload.link === true
        if (isLink && player === undefined) return yield* new Unauthorized()
        const target = linkTo(isLink ? player : undefined)
        const key = headers["idempotency-key"]
        return yield* native.signIn({ environmentId, provider, ...target }, payload, key)
      })
    })
  })
)

const isProvider = Schema.is(Provider)

/** Refuses a provider that the config does not enable; leaves an unknown one to the path's schema. */
const ProviderGateLive = Layer.effect(
  ProviderGate,
  Effect.map(Providers, ({ requireEnabled }) =>
    ProviderGate.of(
      Effect.fnUntraced(function* (handler) {
        const { provider } = yield* HttpRouter.params
        const { environmentId } = yield* CurrentEnvironment
        if (isProvider(provider)) yield* requireEnabled(environmentId, provider)
        return yield* handler
      })
    )
  )
)

export const OAuthHttp = Handlers.pipe(
  Layer.provide([BrowserSignIn.layer, NativeSignIn.layer, ProviderGateLive])
)
