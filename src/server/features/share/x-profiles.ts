/** X profiles of players. Others never see that of a child or of a banned player. */
import { DateTime, Effect, Option, Schema } from "effect"
import { ageBandOf, capabilitiesOf } from "#rpc/ages"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { IdentityNotLinked } from "#rpc/errors/codes"
import { PlayerId } from "#rpc/ids"
import { XProfileRepository } from "#sql/share/x-profiles"
import { apiGroup } from "#server/platform/api-group"
import { makeAgeProfile } from "../ages/service.ts"
import { Configs } from "../config/service.ts"

const isPlayerId = Schema.is(PlayerId)

/** The group `xProfiles`. */
export const XProfilesHttp = apiGroup(
  Api,
  "xProfiles",
  Effect.fn(function* (handlers) {
    const configs = yield* Configs
    const profileOf = yield* makeAgeProfile
    const repository = yield* XProfileRepository
    return handlers.handleAll({
      own: Effect.fnUntraced(function* () {
        const { environmentId, playerId } = yield* CurrentPlayer
        const found = yield* repository.own({ environmentId, playerId })
        return Option.isNone(found) ? yield* new IdentityNotLinked() : found.value
      }),
      show: Effect.fnUntraced(function* ({ payload }) {
        const { environmentId, playerId } = yield* CurrentPlayer
        const { capabilities } = yield* profileOf(environmentId, playerId)
        const visible = payload.visible && capabilities.showName
        const found = yield* repository.show({ environmentId, playerId, visible })
        return Option.isNone(found) ? yield* new IdentityNotLinked() : found.value
      }),
      shown: Effect.fnUntraced(function* ({ query }) {
        const { environmentId } = yield* CurrentEnvironment
        const { audience } = (yield* configs.current(environmentId)).config
        const playerIds = query.ids.split(",").filter(isPlayerId)
        const rows = yield* repository.shown({
          environmentId,
          playerIds,
          now: yield* DateTime.now
        })
        const profiles = rows
          .filter(
            ({ declaredAgeBand }) => capabilitiesOf(ageBandOf(audience, declaredAgeBand)).showName
          )
          .map(
            ({ avatarUrl, name, playerId, username }) =>
              [playerId, { username, name, avatarUrl }] as const
          )
        return { profiles: Object.fromEntries(profiles) }
      })
    })
  })
)
