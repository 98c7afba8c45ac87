/** `/v1/developers` and `/v1/platform/info` (spec section 4.9). */
import { Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import manifest from "../../package.json" with { type: "json" }
import { Api } from "#rpc/api"
import { CurrentDeveloper, type DeveloperCaller } from "#rpc/auth"
import { normalizeEmail } from "#rpc/email"
import { type Throttle, throttles as limits } from "#rpc/limits"
import { clientAddress } from "../http/address.ts"
import { throttled } from "../http/throttled.ts"
import { Settings } from "../settings.ts"
import { Throttles } from "../throttles.ts"
import { DeveloperAccounts } from "./accounts.ts"
import { DeveloperSessions } from "./sessions.ts"

/** What amounts of money are in, once there are any. */
const currency = "usd"

/** A try counts against these buckets only when it fails. */
const makeGuarded = Effect.map(
  Throttles,
  (throttles) => (buckets: ReadonlyArray<readonly [Throttle, string]>) =>
    Effect.fnUntraced(function* <A, E, R>(attempt: Effect.Effect<A, E, R>) {
      for (const [throttle, key] of buckets) yield* throttled(throttles, throttle, key)
      const done = yield* attempt
      for (const [, key] of buckets) yield* throttles.giveBack(key)
      return done
    })
)

const AccessHttp = HttpApiBuilder.group(
  Api,
  "developerAccess",
  Effect.fn(function* (handlers) {
    const accounts = yield* DeveloperAccounts
    const throttles = yield* Throttles
    const guarded = yield* makeGuarded
    const { trustedProxies } = yield* Settings
    const addressOf = (request: HttpServerRequest.HttpServerRequest) =>
      clientAddress(request, trustedProxies)
    return handlers.handleAll({
      signup: Effect.fnUntraced(function* ({ payload, request }) {
        const key = `developer-signup:${addressOf(request)}`
        yield* throttled(throttles, limits.signupPerAddress, key)
        return yield* accounts.signup(payload)
      }),
      login: Effect.fnUntraced(function* ({ payload: { email, password }, request }) {
        const address = addressOf(request)
        const guard = guarded([
          [limits.loginPerAddress, `developer-login:${address}`],
          [limits.loginPerAccount, `developer-login:${address}:${normalizeEmail(email)}`]
        ])
        return yield* guard(accounts.login(email, password))
      })
    })
  })
)

const AccountHttp = HttpApiBuilder.group(
  Api,
  "developers",
  Effect.fn(function* (handlers) {
    const accounts = yield* DeveloperAccounts
    const sessions = yield* DeveloperSessions
    const guarded = yield* makeGuarded
    /** A stolen session must not find the password out by trying. */
    const guardOf = ({ developerId }: DeveloperCaller) =>
      guarded([[limits.loginPerAccount, `developer-proof:${developerId}`]])
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
        return { developer: yield* guardOf(caller)(change) }
      }),
      identities: Effect.fnUntraced(function* () {
        return { identities: yield* accounts.identities(yield* CurrentDeveloper) }
      }),
      unlink: Effect.fnUntraced(function* ({ params, payload }) {
        const caller = yield* CurrentDeveloper
        const remove = accounts.unlink(caller, params.provider, payload)
        return { identities: yield* guardOf(caller)(remove) }
      })
    })
  })
)

const PlatformHttp = HttpApiBuilder.group(
  Api,
  "platform",
  Effect.fn(function* (handlers) {
    const accounts = yield* DeveloperAccounts
    const { features } = yield* Settings
    return handlers.handle(
      "info",
      Effect.fnUntraced(function* () {
        return {
          name: manifest.name,
          version: manifest.version,
          oauthProviders: [],
          signups: yield* accounts.signups,
          billing: { enabled: false, currency },
          hostingDomain: null,
          features: Array.from(features)
        }
      })
    )
  })
)

/** The groups `developerAccess`, `developers` and `platform`. */
export const DevelopersHttp = Layer.mergeAll(AccessHttp, AccountHttp, PlatformHttp).pipe(
  Layer.provide(DeveloperAccounts.layer)
)
