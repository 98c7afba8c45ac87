/** `POST /v1/auth/transfer` and `/v1/auth/transfer/redeem`. */
import { Effect, Layer } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { ShareInAppBrowserDisabled } from "#rpc/errors/codes"
import { InAppBrowserGate } from "#rpc/transfer"
import { apiGroup } from "#server/platform/api-group"
import { clientAddress } from "#server/platform/client-address"
import { Settings } from "#server/platform/settings/settings"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { makeConfigGate } from "../config/config-gate.ts"
import { makeIssue, makeRedeem, seconds } from "./transfer-codes.ts"

/** Session transfer codes redeemed from one IP address. */
export const redeemPerAddress = { limit: 10, seconds: 60 } as const

/** Refuses requests while `share.inAppBrowser` is off in the environment's config. */
export const InAppBrowserGateLive = Layer.effect(
  InAppBrowserGate,
  Effect.map(
    makeConfigGate(({ share }) =>
      share.inAppBrowser.enabled ? undefined : new ShareInAppBrowserDisabled()
    ),
    (gate) => InAppBrowserGate.of(gate)
  )
)

export const TransferHttp = apiGroup(
  Api,
  "transfer",
  Effect.fn(function* (handlers) {
    const issue = yield* makeIssue
    const redeem = yield* makeRedeem
    const throttles = yield* Throttles
    const { trustedProxies } = yield* Settings
    return handlers.handleAll({
      issue: Effect.fnUntraced(function* () {
        const player = yield* CurrentPlayer
        return { code: yield* issue(player), expiresIn: seconds }
      }),
      redeem: Effect.fnUntraced(function* ({ headers, payload, request }) {
        const environment = yield* CurrentEnvironment
        const address = clientAddress(request, trustedProxies)
        const key = `redeem:${environment.environmentId}:${address}`
        yield* takeToken(throttles, redeemPerAddress, key)
        return yield* redeem(environment, payload.code, headers["idempotency-key"])
      })
    })
  })
).pipe(Layer.provide(InAppBrowserGateLive))
