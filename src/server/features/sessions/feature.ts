/** Sessions, as the service composes them. */
import { DateTime, Effect, Layer } from "effect"
import { sessionsFeature } from "#rpc/sessions"
import { SessionRepository, SigningKeyRepository } from "#sql/sessions"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { SessionsHttp } from "./handlers.ts"
import { Sessions } from "./service.ts"
import { AccessTokens } from "./tokens.ts"

const part = Effect.map(SessionRepository, (repository) => ({
  read: (player: StoredPlayer) =>
    Effect.map(repository.ofPlayer(player), (rows) => ({
      sessions: rows.map(({ createdAt, id, lastUsedAt }) => ({
        id,
        createdAt: DateTime.formatIso(createdAt),
        lastUsedAt: DateTime.formatIso(lastUsedAt),
        userAgent: null
      }))
    }))
}))

export const sessions = {
  repositories: Layer.merge(SessionRepository.layer, SigningKeyRepository.layer),
  services: Sessions.layer.pipe(
    Layer.provideMerge(AccessTokens.layer),
    Layer.provide(PlayerStatusCache.layer)
  ),
  routes: SessionsHttp,
  player: playerPart(
    sessionsFeature,
    [{ table: "sessions", exportedAs: "sessions", deletion: "cascade" }],
    part
  )
}
