/** The players whom the signed-in player has blocked. */
import { authorized } from "./authorized.ts"
import type { Module } from "./compose.ts"
import { inPath } from "./path-values.ts"
import type { BlockList } from "./wire.ts"

export interface Blocks {
  /**
   * Blocks a player: from now on messages and signals pass in neither direction. The other one
   * learns nothing of it. Rejects with `too_many_blocks` when the list is full.
   *
   * @example
   * await client.blocks.add(member.id)
   */
  add(playerId: string): Promise<void>

  /**
   * Ends a block.
   *
   * @example
   * await client.blocks.remove(block.player.id)
   */
  remove(playerId: string): Promise<void>

  /**
   * Returns a page of the player's blocks, newest first.
   *
   * @example
   * const { blocks, nextCursor } = await client.blocks.list()
   */
  list(page?: { readonly limit?: number; readonly cursor?: string }): Promise<BlockList>
}

export const blocks: Module<Blocks> = ({ http, tokens }) => ({
  add: async (playerId) => {
    const params = inPath({ playerId })
    await authorized(tokens, (token) =>
      http.request("PUT /v1/social/blocks/{playerId}", { token, params })
    )
  },
  remove: async (playerId) => {
    const params = inPath({ playerId })
    await authorized(tokens, (token) =>
      http.request("DELETE /v1/social/blocks/{playerId}", { token, params })
    )
  },
  list: (query = {}) =>
    authorized(tokens, (token) => http.request("GET /v1/social/blocks", { token, query }))
})
