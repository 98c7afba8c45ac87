/** Data of players, as the service composes them. */
import { Layer } from "effect"
import { ExpiredGuestRepository } from "#sql/player-data/expired-guests"
import { PlayerDataRepository } from "#sql/player-data/repository"
import { GuestExpiry } from "./guest-expiry.ts"
import { PlayerDataHttp } from "./handlers.ts"

export const playerData = {
  repositories: Layer.merge(ExpiredGuestRepository.layer, PlayerDataRepository.layer),
  routes: Layer.merge(GuestExpiry, PlayerDataHttp)
}
