/** Ages, as the service composes them. */
import { Effect } from "effect"
import { ageProfileOf, agesFeature } from "#rpc/ages"
import { AgeRepository } from "#sql/ages"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { Configs } from "../config/service.ts"
import { AgesHttp } from "./handlers.ts"

const part = Effect.gen(function* () {
  const configs = yield* Configs
  const repository = yield* AgeRepository
  return {
    read: Effect.fnUntraced(function* (player: StoredPlayer) {
      const { audience } = (yield* configs.current(player.environmentId)).config
      const signalledAgeBand = yield* repository.signalled(player)
      return { age: { ...ageProfileOf(audience, player.row.declaredAgeBand), signalledAgeBand } }
    })
  }
})

export const ages = {
  repositories: AgeRepository.layer,
  routes: AgesHttp,
  player: playerPart(agesFeature, [], part)
}
