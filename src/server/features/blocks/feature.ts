/** Blocks, as the service composes them. */
import { Effect, Layer } from "effect"
import { blockLimits, blocksFeature } from "#rpc/blocks"
import { BlockRepository } from "#sql/blocks"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { BlocksHttp } from "./handlers.ts"
import { Blocks } from "./service.ts"
import { blockView } from "./view.ts"

const part = Effect.map(BlockRepository, (repository) => ({
  read: ({ environmentId, playerId }: StoredPlayer) =>
    Effect.map(
      repository.page({ environmentId, playerId, after: null, limit: blockLimits.perPlayer }),
      (rows) => ({ blocks: rows.map(blockView) })
    )
}))

export const blocks = {
  repositories: BlockRepository.layer,
  services: Blocks.layer.pipe(Layer.provide(PlayerStatusCache.layer)),
  routes: BlocksHttp,
  player: playerPart(
    blocksFeature,
    [{ table: "blocks", exportedAs: "blocks", deletion: "cascade" }],
    part
  )
}
