/** `/v1/developers/oauth`: sign-in of developers with a provider. */
import { Effect, Option } from "effect"
import { Api } from "#rpc/api"
import { OptionalDeveloper } from "#rpc/auth"
import { oauthThrottles } from "#rpc/oauth/limits"
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
        yield* throttleAddress(oauthThrottles.startPerAddress, "developer-oauth-start", request)
        return { url: yield* oauth.start(provider, yield* OptionalDeveloper, payload) }
      }),
      callback: Effect.fnUntraced(function* ({ params: { provider }, query, request }) {
        yield* throttleAddress(oauthThrottles.returnPerAddress, "developer-oauth-return", request)
        const url = yield* oauth.callback(provider, query)
        return Option.match(url, { onNone: () => expiredPage, onSome: redirectTo })
      }),
      exchange: Effect.fnUntraced(function* ({ headers, payload, request }) {
        yield* throttleAddress(
          oauthThrottles.exchangePerAddress,
          "developer-oauth-exchange",
          request
        )
        return yield* oauth.exchange(payload, headers["idempotency-key"])
      })
    })
  })
)
