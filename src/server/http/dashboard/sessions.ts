/** `/dashboard/session`: sign-up, sign-in and sign-out of the dashboard, which set and clear its cookie. */
import { Effect, Layer } from "effect"
import { HttpEffect, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { DashboardApi } from "#rpc/dashboard"
import type { DeveloperSignedIn } from "#rpc/developers"
import { signInThrottles } from "#rpc/email"
import { InvalidCode, NotFound, OriginNotAllowed } from "#rpc/errors/codes"
import { oauthThrottles } from "#rpc/oauth/limits"
import { apiGroup } from "#server/platform/api-group"
import { clientAddress } from "#server/platform/client-address"
import { Settings } from "#server/platform/settings/settings"
import { countFailures, makeThrottleAddress } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { DeveloperAccountsLive } from "#server/features/developers/layers"
import { DeveloperOAuth } from "#server/features/developers/oauth"
import { DeveloperSessions } from "#server/features/developers/sessions"
import { makeDeveloperSignIn } from "#server/features/developers/sign-in"
import { SignInLinks } from "#server/features/developers/sign-in-links"
import { makeDashboardSession } from "../dashboard-session.ts"
import { RequestsLive } from "../validation.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

const change = (edit: (response: Response) => Response) =>
  HttpEffect.appendPreResponseHandler((_, response) => Effect.succeed(edit(response)))

const SessionHttp = apiGroup(
  DashboardApi,
  "session",
  Effect.fn(function* (handlers) {
    const dashboard = yield* makeDashboardSession
    const links = yield* SignInLinks
    const oauth = yield* DeveloperOAuth
    const sessions = yield* DeveloperSessions
    const signIn = yield* makeDeveloperSignIn
    const throttles = yield* Throttles
    const throttleAddress = yield* makeThrottleAddress
    const { trustedProxies } = yield* Settings
    const check = Effect.fnUntraced(function* (request: Request) {
      if (!dashboard.isServed(request)) return yield* new NotFound()
      if (!dashboard.isAllowed(request)) return yield* new OriginNotAllowed()
    })
    const keep = Effect.fnUntraced(function* ({ developer, token }: DeveloperSignedIn) {
      yield* change((response) => dashboard.withToken(response, token))
      return { developer }
    })
    return handlers.handleAll({
      login: Effect.fnUntraced(function* ({ payload, request }) {
        yield* check(request)
        return yield* keep(yield* signIn.login(request, payload))
      }),
      signup: Effect.fnUntraced(function* ({ headers, payload, request }) {
        yield* check(request)
        return yield* keep(yield* signIn.signup(request, payload, headers["idempotency-key"]))
      }),
      link: Effect.fnUntraced(function* ({ headers, payload, request }) {
        yield* check(request)
        const key = `developer-login:${clientAddress(request, trustedProxies)}`
        const limitFailures = countFailures(throttles, [[signInThrottles.loginPerAddress, key]])
        const used = links.use(payload.code, headers["idempotency-key"])
        return yield* keep(yield* limitFailures(used))
      }),
      exchange: Effect.fnUntraced(function* ({ headers, payload, request }) {
        yield* check(request)
        yield* throttleAddress(
          oauthThrottles.exchangePerAddress,
          "developer-oauth-exchange",
          request
        )
        const result = yield* oauth.exchange(payload, headers["idempotency-key"])
        // The other intents need a session already, and their results are of no use here.
        return result.intent === "login" ? yield* keep(result) : yield* new InvalidCode()
      }),
      logout: Effect.fnUntraced(function* ({ request }) {
        yield* check(request)
        const session = sessions.verify(dashboard.tokenOf(request) ?? "")
        // A session that has ended already needs no end.
        yield* session.pipe(
          Effect.flatMap(({ sessionId }) => sessions.end(sessionId)),
          Effect.catchTag("unauthorized", () => Effect.void)
        )
        yield* change(dashboard.withoutToken)
        return {}
      })
    })
  })
)

/** The routes of the dashboard's session. */
export const DashboardSessions = HttpApiBuilder.layer(DashboardApi).pipe(
  Layer.provide(SessionHttp),
  Layer.provide(RequestsLive),
  Layer.provide(DeveloperAccountsLive)
)
