/** Reads the age profile of a player: its declared age band and the capabilities of that band. */
import { Effect, Option } from "effect"
import { ageProfileOf } from "#rpc/ages"
import { NotFound } from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { PlayerRepository } from "#sql/players"
import { Configs } from "../config/service.ts"

/** Reads the player row instead of the status cache, so a caller sees its own write. */
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
