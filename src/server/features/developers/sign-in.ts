/** Rate-limited sign-up and sign-in of developers, for the API and for the dashboard. */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { Login, Signup } from "#rpc/developers"
import { normalizeEmail, signInThrottles } from "#rpc/email"
import { clientAddress } from "#server/platform/client-address"
import { sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { countFailures, makeThrottleAddress } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { DeveloperAccounts } from "./service.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Sign-up and sign-in with limits per client address and account. */
export const makeDeveloperSignIn = Effect.gen(function* () {
  const accounts = yield* DeveloperAccounts
  const throttles = yield* Throttles
  const throttleAddress = yield* makeThrottleAddress
  const { trustedProxies } = yield* Settings
  return {
    signup: Effect.fnUntraced(function* (
      request: Request,
      payload: Signup,
      repeatKey: string | undefined
    ) {
      yield* throttleAddress(signInThrottles.signupPerAddress, "developer-signup", request)
      return yield* accounts.signup(payload, repeatKey)
    }),
    login: Effect.fnUntraced(function* (request: Request, { email, password }: typeof Login.Type) {
      const addressKey = `developer-login:${clientAddress(request, trustedProxies)}`
      const account = sha256(normalizeEmail(email))
      const limitFailures = countFailures(throttles, [
        [signInThrottles.loginPerAddress, addressKey],
        [signInThrottles.loginPerAccount, `${addressKey}:${account}`],
        [signInThrottles.loginPerAccountAnywhere, `developer-login:anywhere:${account}`]
      ])
      return yield* limitFailures(accounts.login(email, password))
    })
  }
})
