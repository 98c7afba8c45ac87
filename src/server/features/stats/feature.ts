/** Stats, as the service composes them. */
import { DateTime, Effect, Layer } from "effect"
import { statsFeature } from "#rpc/stats"
import { StatRepository, WebhookSecretRepository } from "#sql/stats"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { StatsHttp } from "./handlers.ts"
import { StatReports } from "./service.ts"
import { Verification } from "./verification.ts"
import { WebhookSecrets } from "./webhook-secrets.ts"

const part = Effect.map(StatRepository, (repository) => ({
  read: Effect.fnUntraced(function* (player: StoredPlayer) {
    const totals = yield* repository.totals(player.environmentId, player.playerId)
    const rejected = yield* repository.rejected(player)
    return {
      stats: Object.fromEntries(totals.map(({ stat, total }) => [stat, total])),
      rejectedStats: rejected.map((signal) => ({
        ...signal,
        createdAt: DateTime.formatIso(signal.createdAt)
      }))
    }
  })
}))

export const stats = {
  repositories: Layer.merge(StatRepository.layer, WebhookSecretRepository.layer),
  routes: StatsHttp.pipe(
    Layer.provide(StatReports.layer),
    Layer.provide(Verification.layer),
    Layer.provide(WebhookSecrets.layer)
  ),
  player: playerPart(
    statsFeature,
    [
      { table: "stats", exportedAs: "stats", deletion: "cascade" },
      { table: "stat_signals", exportedAs: "rejectedStats", deletion: "cascade" }
    ],
    part
  )
}
