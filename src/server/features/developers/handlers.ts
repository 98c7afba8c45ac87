/** Developer accounts over HTTP: `/v1/developers` and `/v1/platform/info`. */
import { Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import manifest from "../../../../package.json" with { type: "json" }
import { Api } from "#rpc/api"
import { CurrentDeveloper, type DeveloperCaller } from "#rpc/auth"
import { normalizeEmail } from "#rpc/email"
import { throttles as limits } from "#rpc/limits"
import { DeveloperEmailRepository } from "#sql/developers/emails"
import { InviteRepository } from "#sql/developers/invites"
import { DeveloperFlowRepository } from "#sql/oauth/developer-flows"
import { clientAddress } from "#server/platform/client-address"
import { countFailures, takeToken } from "#server/platform/throttle-guard"
import { sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { Throttles } from "#server/platform/throttles"
import { EmailConfirmation } from "./email-confirmation.ts"
import { DeveloperOAuth } from "./oauth.ts"
import { DeveloperOAuthHttp } from "./oauth-handlers.ts"
import { DeveloperAccounts } from "./service.ts"
import { DeveloperSessions } from "./sessions.ts"
import { viewOf } from "./view.ts"

/** Currency that `/v1/platform/info` reports; billing is off. */
const currency = "usd"

const AccessHttp = HttpApiBuilder.group(
  Api,
  "developerSignIn",
  Effect.fn(function* (handlers) {
    const accounts = yield* DeveloperAccounts
    const confirmation = yield* EmailConfirmation
    const throttles = yield* Throttles
    const { trustedProxies } = yield* Settings
    const addressOf = (request: HttpServerRequest.HttpServerRequest) =>
      clientAddress(request, trustedProxies)
    return handlers.handleAll({
      signup: Effect.fnUntraced(function* ({ payload, request }) {
        const key = `developer-signup:${addressOf(request)}`
        yield* takeToken(throttles, limits.signupPerAddress, key)
        return yield* accounts.signup(payload)
      }),
      verifyEmail: Effect.fnUntraced(function* ({ payload: { token }, request }) {
        const key = `developer-verify:${addressOf(request)}`
        yield* takeToken(throttles, limits.oauthExchangePerAddress, key)
        return { developer: viewOf(yield* confirmation.confirm(token)) }
      }),
      login: Effect.fnUntraced(function* ({ payload: { email, password }, request }) {
        const addressKey = `developer-login:${addressOf(request)}`
        const account = sha256(normalizeEmail(email))
        const limitFailures = countFailures(throttles, [
          [limits.loginPerAddress, addressKey],
          [limits.loginPerAccount, `${addressKey}:${account}`],
          [limits.loginPerAccountAnywhere, `developer-login:anywhere:${account}`]
        ])
        return yield* limitFailures(accounts.login(email, password))
      })
    })
  })
)

const AccountHttp = HttpApiBuilder.group(
  Api,
  "developers",
  Effect.fn(function* (handlers) {
    const accounts = yield* DeveloperAccounts
    const confirmation = yield* EmailConfirmation
    const sessions = yield* DeveloperSessions
    const throttles = yield* Throttles
    /** Limits failed proofs, so that a stolen session cannot guess the password. */
    const limitFailedProofs = ({ developerId }: DeveloperCaller) =>
      countFailures(throttles, [[limits.loginPerAccount, `developer-proof:${developerId}`]])
    return handlers.handleAll({
      logout: Effect.fnUntraced(function* () {
        const { sessionId } = yield* CurrentDeveloper
        yield* sessions.end(sessionId)
        return {}
      }),
      me: Effect.fnUntraced(function* () {
        return { developer: yield* accounts.me(yield* CurrentDeveloper) }
      }),
      password: Effect.fnUntraced(function* ({ payload }) {
        const caller = yield* CurrentDeveloper
        const { currentPassword: password, newPassword, reauthToken } = payload
        const change = accounts.setPassword(caller, { password, reauthToken }, newPassword)
        return { developer: yield* limitFailedProofs(caller)(change) }
      }),
      sendVerification: Effect.fnUntraced(function* () {
        yield* confirmation.request(yield* CurrentDeveloper)
        return {}
      }),
      redeemInvite: Effect.fnUntraced(function* ({ payload: { code } }) {
        const caller = yield* CurrentDeveloper
        const redeem = accounts.redeemInvite(caller, code)
        const key = `developer-invite:${caller.developerId}`
        return yield* countFailures(throttles, [[limits.loginPerAccount, key]])(redeem)
      }),
      identities: Effect.fnUntraced(function* () {
        return { identities: yield* accounts.identities(yield* CurrentDeveloper) }
      }),
      unlink: Effect.fnUntraced(function* ({ params, payload }) {
        const caller = yield* CurrentDeveloper
        const remove = accounts.unlink(caller, params.provider, payload)
        return { identities: yield* limitFailedProofs(caller)(remove) }
      })
    })
  })
)

const PlatformHttp = HttpApiBuilder.group(
  Api,
  "platform",
  Effect.fn(function* (handlers) {
    const accounts = yield* DeveloperAccounts
    const oauth = yield* DeveloperOAuth
    const { features, hosting } = yield* Settings
    return handlers.handle(
      "info",
      Effect.fnUntraced(function* () {
        return {
          name: manifest.name,
          version: manifest.version,
          oauthProviders: oauth.providers,
          signups: yield* accounts.signups,
          setupTokenRequired: yield* accounts.setupTokenRequired,
          billing: { enabled: false, currency },
          hostingDomain: hosting.domain ?? null,
          features: Array.from(features)
        }
      })
    )
  })
)

/** The groups `developerSignIn`, `developerOAuth`, `developers` and `platform`. */
export const DevelopersHttp = Layer.mergeAll(
  AccessHttp,
  AccountHttp,
  DeveloperOAuthHttp,
  PlatformHttp
).pipe(
  Layer.provide([DeveloperAccounts.layer, DeveloperOAuth.layer, EmailConfirmation.layer]),
  Layer.provide([
    DeveloperEmailRepository.layer,
    DeveloperFlowRepository.layer,
    InviteRepository.layer
  ])
)
