/** Players, as the service composes them. */
import { PlayerRepository } from "#sql/players"
import { PlayersHttp } from "./handlers.ts"
import { PlayerStatusCache } from "./status-cache.ts"

export const players = {
  repositories: PlayerRepository.layer,
  services: PlayerStatusCache.layer,
  routes: PlayersHttp
}
