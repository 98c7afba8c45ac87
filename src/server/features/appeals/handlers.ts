/** A player's own bans and appeals over HTTP. The rules are in `../moderation/appeal-rules.ts`. */
import { Effect, Layer } from "effect"
import { Api } from "#rpc/api"
import { appealWindow } from "#rpc/appeals"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { apiGroup } from "#server/platform/api-group"
import { clientAddress } from "#server/platform/client-address"
import { Settings } from "#server/platform/settings/settings"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Sanctions } from "../moderation/service.ts"
import { Sessions } from "../sessions/service.ts"

const SanctionsGroup = apiGroup(
  Api,
  "sanctions",
  Effect.fn(function* (handlers) {
    const sanctions = yield* Sanctions
    return handlers.handleAll({
      list: Effect.fnUntraced(function* () {
        return { sanctions: yield* sanctions.list(yield* CurrentPlayer) }
      }),
      appeal: Effect.fnUntraced(function* ({ params: { sanctionId }, payload: { message } }) {
        const { environmentId, playerId } = yield* CurrentPlayer
        const appeal = { environmentId, playerId, sanctionId, message }
        return { sanction: yield* sanctions.appeal(appeal) }
      })
    })
  })
)

const AppealsGroup = apiGroup(
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
        const rateKey = sessions.sessionIdOf(refreshToken) ?? clientAddress(request, trustedProxies)
        yield* takeToken(throttles, appealWindow, `appeal:${environmentId}:${rateKey}`)
        const { playerId, ...revoked } = yield* sessions.authenticateAppellant(
          environmentId,
          refreshToken
        )
        // The player's other sessions, and appeals with an access token, count together.
        yield* takeToken(throttles, appealWindow, `appeal:${playerId}`)
        const sanctionId = payload.sanctionId ?? revoked.sanctionId ?? undefined
        const appeal = { environmentId, playerId, sanctionId, message }
        return { sanction: yield* sanctions.appeal(appeal) }
      })
    )
  })
)

/** The groups `sanctions` and `appeals`. */
export const AppealsHttp = Layer.mergeAll(SanctionsGroup, AppealsGroup)
