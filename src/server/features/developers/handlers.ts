/** Developer accounts over HTTP: `/v1/developers` and `/v1/platform/info`. */
import { Effect, Layer } from "effect"
import { apiGroup } from "#server/platform/api-group"
import manifest from "../../../../package.json" with { type: "json" }
import { Api } from "#rpc/api"
import { CurrentDeveloper, type DeveloperCaller } from "#rpc/auth"
import { oauthThrottles } from "#rpc/oauth/limits"
import { signInThrottles } from "#rpc/email"
import { countFailures, makeThrottleAddress } from "#server/platform/throttle-guard"
import { Settings } from "#server/platform/settings/settings"
import { Throttles } from "#server/platform/throttles"
import { EmailConfirmation } from "./email-confirmation.ts"
import { DeveloperOAuth } from "./oauth.ts"
import { DeveloperAccountsLive } from "./layers.ts"
import { DeveloperOAuthHttp } from "./oauth-handlers.ts"
import { DeveloperAccounts } from "./service.ts"
import { DeveloperSessions } from "./sessions.ts"
import { makeDeveloperSignIn } from "./sign-in.ts"
import { viewOf } from "./view.ts"

/** Currency of prices and balances. */
const currency = "usd"

const AccessHttp = apiGroup(
  Api,
  "developerSignIn",
  Effect.fn(function* (handlers) {
    const confirmation = yield* EmailConfirmation
    const signIn = yield* makeDeveloperSignIn
    const throttleAddress = yield* makeThrottleAddress
    return handlers.handleAll({
      signup: ({ headers, payload, request }) =>
        signIn.signup(request, payload, headers["idempotency-key"]),
      verifyEmail: Effect.fnUntraced(function* ({ headers, payload: { token }, request }) {
        yield* throttleAddress(oauthThrottles.exchangePerAddress, "developer-verify", request)
        return { developer: viewOf(yield* confirmation.confirm(token, headers["idempotency-key"])) }
      }),
      login: ({ payload, request }) => signIn.login(request, payload)
    })
  })
)

const AccountHttp = apiGroup(
  Api,
  "developers",
  Effect.fn(function* (handlers) {
    const accounts = yield* DeveloperAccounts
    const confirmation = yield* EmailConfirmation
    const sessions = yield* DeveloperSessions
    const throttles = yield* Throttles
    /** Limits failed proofs, so that a stolen session cannot guess the password. */
    const limitFailedProofs = ({ developerId }: DeveloperCaller) =>
      countFailures(throttles, [
        [signInThrottles.loginPerAccount, `developer-proof:${developerId}`]
      ])
    return handlers.handleAll({
      logout: Effect.fnUntraced(function* () {
        const { sessionId } = yield* CurrentDeveloper
        yield* sessions.end(sessionId)
        return {}
      }),
      me: Effect.fnUntraced(function* () {
        return { developer: yield* accounts.me(yield* CurrentDeveloper) }
      }),
      password: Effect.fnUntraced(function* ({ headers, payload }) {
        const caller = yield* CurrentDeveloper
        const { currentPassword: password, newPassword, reauthToken } = payload
        const given = { password, reauthToken, key: headers["idempotency-key"] }
        const change = accounts.setPassword(caller, given, newPassword)
        return { developer: yield* limitFailedProofs(caller)(change) }
      }),
      sendVerification: Effect.fnUntraced(function* () {
        yield* confirmation.request(yield* CurrentDeveloper)
        return {}
      }),
      redeemInvite: Effect.fnUntraced(function* ({ headers, payload: { code } }) {
        const caller = yield* CurrentDeveloper
        const redeem = accounts.redeemInvite(caller, code, headers["idempotency-key"])
        const key = `developer-invite:${caller.developerId}`
        return yield* countFailures(throttles, [[signInThrottles.loginPerAccount, key]])(redeem)
      }),
      identities: Effect.fnUntraced(function* () {
        return { identities: yield* accounts.identities(yield* CurrentDeveloper) }
      }),
      unlink: Effect.fnUntraced(function* ({ headers, params, payload }) {
        const caller = yield* CurrentDeveloper
        const given = { ...payload, key: headers["idempotency-key"] }
        const remove = accounts.unlink(caller, params.provider, given)
        return { identities: yield* limitFailedProofs(caller)(remove) }
      })
    })
  })
)

const PlatformHttp = apiGroup(
  Api,
  "platform",
  Effect.fn(function* (handlers) {
    const accounts = yield* DeveloperAccounts
    const oauth = yield* DeveloperOAuth
    const { features, hosting, money } = yield* Settings
    return handlers.handle(
      "info",
      Effect.fnUntraced(function* () {
        return {
          name: manifest.name,
          version: manifest.version,
          oauthProviders: oauth.providers,
          signups: yield* accounts.signups,
          setupTokenRequired: yield* accounts.setupTokenRequired,
          billing: { enabled: money.enabled, currency },
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
).pipe(Layer.provide(DeveloperAccountsLive))
