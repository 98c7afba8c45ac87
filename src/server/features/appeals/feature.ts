/** Appeals, as the service composes them. */
import { Effect } from "effect"
import { appealsFeature } from "#rpc/appeals"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { Sanctions } from "../moderation/service.ts"
import { AppealsHttp } from "./handlers.ts"

const part = Effect.map(Sanctions, (all) => ({
  read: (player: StoredPlayer) =>
    Effect.map(all.list(player), (sanctions) => ({
      sanctions,
      appeals: sanctions.flatMap(({ appeal, id }) =>
        appeal === undefined ? [] : [{ sanctionId: id, ...appeal }]
      )
    }))
}))

export const appeals = {
  routes: AppealsHttp,
  player: playerPart(
    appealsFeature,
    [{ table: "sanctions", exportedAs: "sanctions", deletion: "cascade" }],
    part
  )
}
