/**
 * Age groups as players change them (spec sections 2.2 and 4.1, decisions 3.2.13). A change is in force
 * on all nodes and in what is alive at once.
 */
import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { type AgeBand, ageBandOf, ageProfileOf, bandOfSignal } from "#rpc/ages"
import { Api } from "#rpc/api"
import { CurrentPlayer } from "#rpc/auth"
import { AgeChangeNotAllowed, NotFound } from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { AgeRepository } from "#sql/ages"
import { PlayerRepository } from "#sql/players/repository"
import { Configs } from "../config/service.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"

/** The age profile of a player, as it is stored. */
export const makeAgeProfile = Effect.gen(function* () {
  const configs = yield* Configs
  const players = yield* PlayerRepository
  return Effect.fnUntraced(function* (environmentId: EnvironmentId, playerId: PlayerId) {
    const player = yield* players.find(environmentId, playerId)
    if (Option.isNone(player)) return yield* new NotFound()
    const { audience } = (yield* configs.current(environmentId)).config
    return ageProfileOf(audience, player.value.declaredAgeBand)
  })
})

/** `POST /v1/players/me/age-signal`, `GET /v1/social/profile`, `PUT /v1/social/age`. */
export const AgesHttp = HttpApiBuilder.group(
  Api,
  "ages",
  Effect.fn(function* (handlers) {
    const configs = yield* Configs
    const profileOf = yield* makeAgeProfile
    const rows = yield* AgeRepository
    const standings = yield* PlayerStatusCache

    const declare = Effect.fnUntraced(function* (band: AgeBand) {
      const { environmentId, playerId } = yield* CurrentPlayer
      const changed = yield* rows.declare({ environmentId, playerId, band })
      if (Option.isSome(changed)) yield* standings.changed(environmentId, playerId)
      const profile = yield* profileOf(environmentId, playerId)
      return Option.isSome(changed) ? profile : yield* new AgeChangeNotAllowed()
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
          yield* rows.signal({ environmentId, playerId, band, undeclared })
          yield* standings.changed(environmentId, playerId)
        }
        return yield* profileOf(environmentId, playerId)
      })
    })
  })
)
