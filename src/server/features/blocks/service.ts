/** The blocks that count for what is alive. */
import { Context, Effect, Layer } from "effect"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { BlockRepository } from "#sql/blocks"
import { PlayerStatusCache } from "../players/status-cache.ts"

const none: ReadonlyArray<string> = []

/** Reads whom players have blocked. */
export class Blocks extends Context.Service<
  Blocks,
  {
    /** The players whom a player has blocked, newest first. Most have none, which the cache knows. */
    readonly of: (
      environmentId: EnvironmentId,
      playerId: PlayerId
    ) => Effect.Effect<ReadonlyArray<string>>
  }
>()("server/features/blocks/service/Blocks") {
  static readonly layer = Layer.effect(
    Blocks,
    Effect.gen(function* () {
      const repository = yield* BlockRepository
      const statuses = yield* PlayerStatusCache
      return Blocks.of({
        of: (environmentId, playerId) =>
          Effect.flatMap(statuses.get(environmentId, playerId), (status) =>
            status?.hasBlocks === true
              ? repository.blockedBy(environmentId, playerId)
              : Effect.succeed(none)
          )
      })
    })
  )
}
