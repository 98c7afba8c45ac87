/** A player's own sanctions, and the appeals against them: the groups `sanctions` and `appeals`. */
import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { throttles as paces } from "#rpc/limits"
import { clientAddress } from "#server/platform/client-address"
import { Settings } from "#server/platform/settings/settings"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Sanctions } from "../moderation/service.ts"
import { Sessions } from "../sessions/service.ts"

const SanctionsGroup = HttpApiBuilder.group(
  Api,
  "sanctions",
  Effect.fn(function* (handlers) {
    const sanctions = yield* Sanctions
    const throttles = yield* Throttles
    return handlers.handleAll({
      list: Effect.fnUntraced(function* () {
        return { sanctions: yield* sanctions.list(yield* CurrentPlayer) }
      }),
      appeal: Effect.fnUntraced(function* ({ params: { sanctionId }, payload: { message } }) {
        const { environmentId, playerId } = yield* CurrentPlayer
        yield* takeToken(throttles, paces.appeals, `appeal:${playerId}`)
        const appealing = { environmentId, playerId, sanctionId, message }
        return { sanction: yield* sanctions.appeal(appealing) }
      })
    })
  })
)

const AppealsGroup = HttpApiBuilder.group(
  Api,
  "appeals",
  Effect.fn(function* (handlers) {
    const sanctions = yield* Sanctions
    const sessions = yield* Sessions
    const throttles = yield* Throttles
    const { trustedProxies } = yield* Settings
    return handlers.handle(
      "appeal",
      Effect.fnUntraced(function* ({ payload, request }) {
        const { environmentId } = yield* CurrentEnvironment
        const { message, refreshToken } = payload
        const whose = sessions.sessionIdOf(refreshToken) ?? clientAddress(request, trustedProxies)
        yield* takeToken(throttles, paces.appeals, `appeal:${environmentId}:${whose}`)
        const { playerId, ...revoked } = yield* sessions.authenticateAppellant(
          environmentId,
          refreshToken
        )
        const sanctionId = payload.sanctionId ?? revoked.sanctionId ?? undefined
        const appealing = { environmentId, playerId, sanctionId, message }
        return { sanction: yield* sanctions.appeal(appealing) }
      })
    )
  })
)

/** The groups `sanctions` and `appeals`. */
export const AppealsHttp = Layer.mergeAll(SanctionsGroup, AppealsGroup)
