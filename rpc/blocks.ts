/**
 * Blocks: the players whom a player wants nothing from. They work whatever features are off. No
 * response, event or list names a player who has blocked the reader.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { PlayerRate, PlayerToken, PublishableKey, Requests } from "./auth.ts"
import { TooManyBlocks, wire } from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { PlayerId, PlayerIdText } from "./ids.ts"
import { PageLimit } from "./pages.ts"
import { Timestamp } from "./text.ts"

/** Players whom a player has blocked. */
export const blockLimits = { perPlayer: 1000 } as const

/** A block, with the player whom it concerns. */
export const Block = Schema.Struct({
  player: Schema.Struct({ id: PlayerIdText, displayName: Schema.String }),
  createdAt: Timestamp
}).annotate({ identifier: "Block", description: "A player whom the signed-in player has blocked." })
export type Block = typeof Block.Type

/** Cursor of a page: the time of the last block, Unix milliseconds, and its player. */
const BlockCursor = Schema.String.check(
  Schema.isPattern(/^\d{1,15}\.pl_[0-9A-HJKMNP-TV-Z]{26}$/, {
    message: "Expected the nextCursor of a previous response"
  })
)

const BlockList = Schema.Struct({
  blocks: Schema.Array(Block),
  nextCursor: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "BlockList",
  description: "A page of the player's blocks, newest first."
})

const Done = Schema.Struct({}).annotate({
  identifier: "BlockChanged",
  description: "It is done. The answer is the same for a player who does not exist."
})

const rate = { burst: 60, seconds: 60, name: "block" } as const

/** `/v1/social/blocks`: the blocks of the signed-in player. */
export class BlocksApi extends group(
  "blocks",
  "players",
  "Blocks",
  "The players whom the signed-in player has blocked. Nobody learns who has blocked them."
)
  .add(
    HttpApiEndpoint.get("list", "/social/blocks", {
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(BlockCursor) },
      success: BlockList
    }).annotate(OpenApi.Summary, "List the player's blocks, newest first"),
    HttpApiEndpoint.put("add", "/social/blocks/:playerId", {
      params: { playerId: PlayerId },
      success: Done,
      error: wire(TooManyBlocks)
    })
      .annotate(OpenApi.Summary, "Block a player; messages pass in neither direction")
      .annotate(PlayerRate, rate),
    HttpApiEndpoint.delete("remove", "/social/blocks/:playerId", {
      params: { playerId: PlayerId },
      success: Done
    })
      .annotate(OpenApi.Summary, "End a block")
      .annotate(PlayerRate, rate)
  )
  .prefix("/v1")
  .middleware(Requests)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}

export const blocksFeature = feature({
  word: "blocks",
  groups: [BlocksApi],
  exported: {
    /** The player's own blocks, newest first; never who has blocked the player. */
    blocks: Schema.Array(Block)
  }
})
