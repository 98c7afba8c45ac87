/** `/v1/auth/email`, `/v1/auth/password` and the email routes of the signed-in player. */
import { Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { normalizeEmail, signInThrottles } from "#rpc/email"
import type { InvalidRequest } from "#rpc/errors/codes"
import { apiGroup } from "#server/platform/api-group"
import { clientAddress } from "#server/platform/client-address"
import { sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { countFailures, withRetryAfter, takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { makeRedirectUrlCheck } from "../oauth/redirect-urls.ts"
import { EmailLinks } from "./links.ts"
import { EmailAccounts, type LinkTarget } from "./service.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Reads the target of a mail link. The environment's config must allow the redirect URL. */
const makeLinkTarget = Effect.map(makeRedirectUrlCheck, (checkRedirectUrl) =>
  Effect.fnUntraced(function* (
    request: Request,
    { redirectUrl }: { readonly redirectUrl?: string }
  ): Effect.fn.Return<LinkTarget, InvalidRequest, CurrentEnvironment> {
    if (redirectUrl !== undefined) {
      yield* checkRedirectUrl(yield* CurrentEnvironment, redirectUrl, "redirectUrl")
    }
    return { redirectUrl: redirectUrl ?? null, key: request.headers["x-svc-key"] ?? "" }
  })
)

/** Limits sign-ups per client address, since a refused sign-up reveals that an account exists. */
const makeThrottleSignup = Effect.gen(function* () {
  const throttles = yield* Throttles
  const { trustedProxies } = yield* Settings
  return Effect.fnUntraced(function* (request: Request) {
    const { environmentId } = yield* CurrentEnvironment
    const address = clientAddress(request, trustedProxies)
    yield* takeToken(
      throttles,
      signInThrottles.signupPerAddress,
      `signup:${environmentId}:${address}`
    )
  })
})

const PublicEmailHttp = apiGroup(
  Api,
  "email",
  Effect.fn(function* (handlers) {
    const accounts = yield* EmailAccounts
    const links = yield* EmailLinks
    const throttles = yield* Throttles
    const linkTarget = yield* makeLinkTarget
    const throttleSignup = yield* makeThrottleSignup
    const { trustedProxies } = yield* Settings
    return handlers.handleAll({
      signup: Effect.fnUntraced(function* ({ payload, request }) {
        const link = yield* linkTarget(request, payload)
        yield* throttleSignup(request)
        return yield* accounts.signUp(yield* CurrentEnvironment, payload, link)
      }),
      login: Effect.fnUntraced(function* ({ payload, request }) {
        const environment = yield* CurrentEnvironment
        const { environmentId } = environment
        const from = `login:${environmentId}:${clientAddress(request, trustedProxies)}`
        const account = sha256(normalizeEmail(payload.email))
        const guard = countFailures(throttles, [
          [signInThrottles.loginPerAddress, from],
          [signInThrottles.loginPerAccount, `${from}:${account}`],
          [signInThrottles.loginPerAccountAnywhere, `login:${environmentId}:anywhere:${account}`]
        ])
        return yield* guard(accounts.login(environment, payload))
      }),
      verify: Effect.fnUntraced(function* ({ headers, payload }) {
        const key = headers["idempotency-key"]
        return { player: yield* links.verify(yield* CurrentEnvironment, payload.token, key) }
      }),
      disown: Effect.fnUntraced(function* ({ headers, payload }) {
        const key = headers["idempotency-key"]
        yield* links.disown(yield* CurrentEnvironment, payload.token, key)
        return {}
      }),
      forgot: Effect.fnUntraced(function* ({ payload, request }) {
        const environment = yield* CurrentEnvironment
        const link = yield* linkTarget(request, payload)
        const address = clientAddress(request, trustedProxies)
        const key = `forgot:${environment.environmentId}:${address}`
        const throttle = throttles.take(signInThrottles.forgotPerAddress, key)
        yield* links.forgot(environment, payload.email, link, throttle)
        return {}
      }),
      reset: Effect.fnUntraced(function* ({ headers, payload: { password, token } }) {
        const key = headers["idempotency-key"]
        yield* links.reset(yield* CurrentEnvironment, token, password, key)
        return {}
      })
    })
  })
)

const PlayerEmailHttp = apiGroup(
  Api,
  "playerEmail",
  Effect.fn(function* (handlers) {
    const accounts = yield* EmailAccounts
    const links = yield* EmailLinks
    const throttles = yield* Throttles
    const linkTarget = yield* makeLinkTarget
    const throttleSignup = yield* makeThrottleSignup
    return handlers.handleAll({
      link: Effect.fnUntraced(function* ({ payload, request }) {
        const link = yield* linkTarget(request, payload)
        yield* throttleSignup(request)
        return { player: yield* accounts.link(yield* CurrentPlayer, payload, link) }
      }),
      resend: Effect.fnUntraced(function* ({ payload, request }) {
        const link = yield* linkTarget(request, payload)
        yield* withRetryAfter(links.resend(yield* CurrentPlayer, link))
        return {}
      }),
      change: Effect.fnUntraced(function* ({ payload }) {
        const player = yield* CurrentPlayer
        const { currentPassword, newPassword, refreshToken } = payload
        // A stolen access token must not allow guessing the password.
        const guard = countFailures(throttles, [
          [signInThrottles.loginPerAccount, `proof:${player.playerId}`]
        ])
        yield* guard(accounts.changePassword(player, currentPassword, newPassword, refreshToken))
        return {}
      })
    })
  })
)

/** The groups `email` and `ownEmail`. */
export const EmailHttp = Layer.mergeAll(PublicEmailHttp, PlayerEmailHttp).pipe(
  Layer.provide([EmailAccounts.layer, EmailLinks.layer])
)
