/** Moderation, as the service composes it. */
import { Layer } from "effect"
import { SanctionRepository } from "#sql/moderation"
import { ModerationHttp } from "./handlers.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { Sanctions } from "./service.ts"

export const moderation = {
  repositories: SanctionRepository.layer,
  services: Sanctions.layer.pipe(Layer.provide(PlayerStatusCache.layer)),
  routes: ModerationHttp
}
