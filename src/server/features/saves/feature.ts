/** Cloud saves, as the service composes them. */
import { DateTime, Effect, Option } from "effect"
import { savesFeature } from "#rpc/saves"
import { SaveRepository } from "#sql/saves"
import { type PlayerKey, playerPart } from "#server/platform/player-parts"
import { SavesHttp } from "./handlers.ts"

const part = Effect.map(SaveRepository, (repository) => ({
  large: {
    property: "saves" as const,
    next: (player: PlayerKey, after: string) =>
      Effect.map(
        repository.next({ ...player, key: after }),
        Option.map(({ data, updatedAt, ...save }) => {
          const item = JSON.stringify({ ...save, updatedAt: DateTime.formatIso(updatedAt) })
          // The data is JSON text already: it is sent as it was stored.
          return { key: save.key, json: `${item.slice(0, -1)},"data":${data}}` }
        })
      )
  }
}))

export const saves = {
  repositories: SaveRepository.layer,
  routes: SavesHttp,
  player: playerPart(
    savesFeature,
    [
      { table: "saves", exportedAs: "saves", deletion: "cascade" },
      { table: "save_counts", exportedAs: null, deletion: "cascade" }
    ],
    part
  )
}
