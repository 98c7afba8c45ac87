/** `POST /v1/auth/guest`, `/refresh` and `/logout`. */
import { Effect } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import { sessionThrottles } from "#rpc/sessions"
import { apiGroup } from "#server/platform/api-group"
import { clientAddress } from "#server/platform/client-address"
import { Settings } from "#server/platform/settings/settings"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Sessions } from "./service.ts"

export const SessionsHttp = apiGroup(
  Api,
  "sessions",
  Effect.fn(function* (handlers) {
    const sessions = yield* Sessions
    const throttles = yield* Throttles
    const { trustedProxies } = yield* Settings
    return handlers.handleAll({
      guest: Effect.fnUntraced(function* ({ payload, request }) {
        const { environmentId } = yield* CurrentEnvironment
        const address = clientAddress(request, trustedProxies)
        const key = `guest:${environmentId}:${address}`
        yield* takeToken(throttles, sessionThrottles.guestPerAddress, key)
        return yield* sessions.createGuest(environmentId, payload.displayName)
      }),
      refresh: Effect.fnUntraced(function* ({ headers, payload, request }) {
        const { environmentId } = yield* CurrentEnvironment
        const { refreshToken } = payload
        // A forged token must not exhaust the bucket of a real session.
        const caller = sessions.sessionIdOf(refreshToken) ?? clientAddress(request, trustedProxies)
        yield* takeToken(
          throttles,
          sessionThrottles.refreshPerSession,
          `refresh:${environmentId}:${caller}`
        )
        return yield* sessions.refresh(environmentId, refreshToken, headers["idempotency-key"])
      }),
      logout: Effect.fnUntraced(function* ({ payload }) {
        const { environmentId } = yield* CurrentEnvironment
        yield* sessions.logout(environmentId, payload.refreshToken)
        return {}
      })
    })
  })
)
