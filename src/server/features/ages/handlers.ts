/**
 * `POST /v1/players/me/age-signal`, `GET /v1/social/profile`, `PUT /v1/social/age`. A change takes
 * effect at once on every node and on open sockets.
 */
import { Effect, Option } from "effect"
import { type AgeBand, ageBandOf, bandOfSignal } from "#rpc/ages"
import { Api } from "#rpc/api"
import { CurrentPlayer } from "#rpc/auth"
import { AgeChangeNotAllowed } from "#rpc/errors/codes"
import { AgeRepository } from "#sql/ages"
import { apiGroup } from "#server/platform/api-group"
import { Configs } from "../config/service.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { makeAgeProfile } from "./service.ts"

export const AgesHttp = apiGroup(
  Api,
  "ages",
  Effect.fn(function* (handlers) {
    const ages = yield* AgeRepository
    const configs = yield* Configs
    const profileOf = yield* makeAgeProfile
    const statuses = yield* PlayerStatusCache

    const declare = Effect.fnUntraced(function* (band: AgeBand) {
      const { environmentId, playerId } = yield* CurrentPlayer
      const updated = yield* ages.declare({ environmentId, playerId, band })
      if (Option.isSome(updated)) yield* statuses.invalidate(environmentId, playerId)
      const profile = yield* profileOf(environmentId, playerId)
      return Option.isSome(updated) ? profile : yield* new AgeChangeNotAllowed()
    })

    return handlers.handleAll({
      profile: Effect.fnUntraced(function* () {
        const { environmentId, playerId } = yield* CurrentPlayer
        return yield* profileOf(environmentId, playerId)
      }),
      declare: ({ payload }) => declare(payload.band),
      signal: Effect.fnUntraced(function* ({ payload }) {
        const { environmentId, playerId } = yield* CurrentPlayer
        const band = bandOfSignal(payload)
        if (band !== undefined) {
          const { audience } = (yield* configs.current(environmentId)).config
          const undeclared = ageBandOf(audience, null)
          yield* ages.signal({ environmentId, playerId, band, undeclared })
          yield* statuses.invalidate(environmentId, playerId)
        }
        return yield* profileOf(environmentId, playerId)
      })
    })
  })
)
