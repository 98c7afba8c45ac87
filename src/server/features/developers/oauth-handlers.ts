/** `/v1/developers/oauth`: sign-in of developers with a provider. */
import { Effect, Option } from "effect"
import { Api } from "#rpc/api"
import { OptionalDeveloper } from "#rpc/auth"
import { throttles as limits } from "#rpc/limits"
import { apiGroup } from "#server/platform/api-group"
import { makeThrottleAddress } from "#server/platform/throttle-guard"
import { expiredPage, redirectTo } from "../oauth/pages.ts"
import { DeveloperOAuth } from "./oauth.ts"

export const DeveloperOAuthHttp = apiGroup(
  Api,
  "developerOAuth",
  Effect.fn(function* (handlers) {
    const oauth = yield* DeveloperOAuth
    const throttleAddress = yield* makeThrottleAddress
    return handlers.handleAll({
      start: Effect.fnUntraced(function* ({ params: { provider }, payload, request }) {
        yield* throttleAddress(limits.oauthStartPerAddress, "developer-oauth-start", request)
        return { url: yield* oauth.start(provider, yield* OptionalDeveloper, payload) }
      }),
      callback: Effect.fnUntraced(function* ({ params: { provider }, query, request }) {
        yield* throttleAddress(limits.oauthReturnPerAddress, "developer-oauth-return", request)
        const url = yield* oauth.callback(provider, query)
        return Option.match(url, { onNone: () => expiredPage, onSome: redirectTo })
      }),
      exchange: Effect.fnUntraced(function* ({ headers, payload, request }) {
        yield* throttleAddress(limits.oauthExchangePerAddress, "developer-oauth-exchange", request)
        return yield* oauth.exchange(payload, headers["idempotency-key"])
      })
    })
  })
)
