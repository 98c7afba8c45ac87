/** Data of players, as the service composes them. */
import { Layer } from "effect"
import { ExpiredGuestRepository } from "#sql/player-data/expired-guests"
import { PlayerDataRepository } from "#sql/player-data/repository"
import { playerPart } from "#server/platform/player-parts"
import { GuestExpiry } from "./guest-expiry.ts"
import { PlayerDataHttp } from "./handlers.ts"
import { PlayerData } from "./service.ts"

export const playerData = {
  repositories: Layer.merge(ExpiredGuestRepository.layer, PlayerDataRepository.layer),
  routes: Layer.merge(GuestExpiry, PlayerDataHttp).pipe(Layer.provide(PlayerData.layer)),
  // The tombstones, and tables of the platform.
  player: playerPart({}, [
    { table: "deleted_players", exportedAs: null, deletion: "retained" },
    { table: "idempotency_keys", exportedAs: null, deletion: "statement" },
    { table: "mails", exportedAs: null, deletion: "cascade" },
    { table: "rate_windows", exportedAs: null, deletion: "statement" },
    { table: "single_use_codes", exportedAs: null, deletion: "cascade" },
    { table: "spent_answers", exportedAs: null, deletion: "cascade" },
    { table: "throttles", exportedAs: null, deletion: "statement" }
  ])
}
