/** Sessions, as the service composes them. */
import { Layer } from "effect"
import { SessionRepository, SigningKeyRepository } from "#sql/sessions"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { SessionsHttp } from "./handlers.ts"
import { Sessions } from "./service.ts"
import { AccessTokens } from "./tokens.ts"

export const sessions = {
  repositories: Layer.merge(SessionRepository.layer, SigningKeyRepository.layer),
  services: Sessions.layer.pipe(
    Layer.provideMerge(AccessTokens.layer),
    Layer.provide(PlayerStatusCache.layer)
  ),
  routes: SessionsHttp
}
