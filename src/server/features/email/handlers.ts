/** Sign-in with an email over HTTP (spec section 4.1). */
import { Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { normalizeEmail } from "#rpc/email"
import type { InvalidRequest } from "#rpc/errors/codes"
import { throttles as limits } from "#rpc/limits"
import { clientAddress } from "#server/platform/client-address"
import { sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { countFailures, withRetryAfter, takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { makeRedirectUrlCheck } from "../config/redirect-urls.ts"
import { EmailAccounts, type LinkTarget } from "./service.ts"
import { EmailLinks } from "./links.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Where the link of a mail leads: to an address that the environment's config allows. */
const makeLinkTarget = Effect.map(makeRedirectUrlCheck, (allowReturn) =>
  Effect.fnUntraced(function* (
    request: Request,
    { redirectUrl }: { readonly redirectUrl?: string }
  ): Effect.fn.Return<LinkTarget, InvalidRequest, CurrentEnvironment> {
    if (redirectUrl !== undefined) {
      yield* allowReturn(yield* CurrentEnvironment, redirectUrl, "redirectUrl")
    }
    return { redirectUrl: redirectUrl ?? null, key: request.headers["x-svc-key"] ?? "" }
  })
)

/** Counts those who make accounts from one address, and those who find out who has one. */
const makeSignupPace = Effect.gen(function* () {
  const throttles = yield* Throttles
  const { trustedProxies } = yield* Settings
  return Effect.fnUntraced(function* (request: Request) {
    const { environmentId } = yield* CurrentEnvironment
    const address = clientAddress(request, trustedProxies)
    yield* takeToken(throttles, limits.signupPerAddress, `signup:${environmentId}:${address}`)
  })
})

const AnyonesHttp = HttpApiBuilder.group(
  Api,
  "email",
  Effect.fn(function* (handlers) {
    const accounts = yield* EmailAccounts
    const links = yield* EmailLinks
    const throttles = yield* Throttles
    const linkTarget = yield* makeLinkTarget
    const signupPace = yield* makeSignupPace
    const { trustedProxies } = yield* Settings
    return handlers.handleAll({
      signup: Effect.fnUntraced(function* ({ payload, request }) {
        const link = yield* linkTarget(request, payload)
        yield* signupPace(request)
        return yield* accounts.signUp(yield* CurrentEnvironment, payload, link)
      }),
      login: Effect.fnUntraced(function* ({ payload, request }) {
        const environment = yield* CurrentEnvironment
        const { environmentId } = environment
        const from = `login:${environmentId}:${clientAddress(request, trustedProxies)}`
        const account = sha256(normalizeEmail(payload.email))
        const guard = countFailures(throttles, [
          [limits.loginPerAddress, from],
          [limits.loginPerAccount, `${from}:${account}`],
          [limits.loginPerAccountAnywhere, `login:${environmentId}:anywhere:${account}`]
        ])
        return yield* guard(accounts.login(environment, payload))
      }),
      verify: Effect.fnUntraced(function* ({ payload }) {
        return { player: yield* links.verify(yield* CurrentEnvironment, payload.token) }
      }),
      forgot: Effect.fnUntraced(function* ({ payload, request }) {
        const environment = yield* CurrentEnvironment
        const link = yield* linkTarget(request, payload)
        const address = clientAddress(request, trustedProxies)
        const key = `forgot:${environment.environmentId}:${address}`
        const pace = throttles.take(limits.forgotPerAddress, key)
        yield* links.forgot(environment, payload.email, link, pace)
        return {}
      }),
      reset: Effect.fnUntraced(function* ({ payload }) {
        yield* links.reset(yield* CurrentEnvironment, payload.token, payload.password)
        return {}
      })
    })
  })
)

const OwnHttp = HttpApiBuilder.group(
  Api,
  "playerEmail",
  Effect.fn(function* (handlers) {
    const accounts = yield* EmailAccounts
    const links = yield* EmailLinks
    const throttles = yield* Throttles
    const linkTarget = yield* makeLinkTarget
    const signupPace = yield* makeSignupPace
    return handlers.handleAll({
      link: Effect.fnUntraced(function* ({ payload, request }) {
        const link = yield* linkTarget(request, payload)
        yield* signupPace(request)
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
        // A stolen token must not find the password out by trying.
        const guard = countFailures(throttles, [
          [limits.loginPerAccount, `proof:${player.playerId}`]
        ])
        yield* guard(accounts.changePassword(player, currentPassword, newPassword, refreshToken))
        return {}
      })
    })
  })
)

/** The groups `email` and `ownEmail`. */
export const EmailHttp = Layer.mergeAll(AnyonesHttp, OwnHttp).pipe(
  Layer.provide([EmailAccounts.layer, EmailLinks.layer])
)
