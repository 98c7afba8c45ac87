/** Players, as the service composes them. */
import { DateTime, Effect } from "effect"
import { playersFeature } from "#rpc/players"
import { PlayerRepository } from "#sql/players"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { PlayersHttp } from "./handlers.ts"
import { PlayerStatusCache } from "./status-cache.ts"
import { playerView } from "./view.ts"

const part = Effect.map(PlayerRepository, (repository) => ({
  read: ({ environmentId, playerId, row }: StoredPlayer) =>
    Effect.map(repository.lastSeenAt(environmentId, playerId), (at) => ({
      player: playerView(row),
      lastSeenAt: at === null ? null : DateTime.formatIso(at)
    }))
}))

export const players = {
  repositories: PlayerRepository.layer,
  services: PlayerStatusCache.layer,
  routes: PlayersHttp,
  player: playerPart(
    playersFeature,
    [{ table: "players", exportedAs: "player", deletion: "itself" }],
    part
  )
}
