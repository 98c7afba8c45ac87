/** A block as its player sees it. */
import { DateTime } from "effect"
import type { Block } from "#rpc/blocks"
import type { BlockRow } from "#sql/blocks"

export const blockView = ({ blockedId, createdAt, displayName }: BlockRow): Block => ({
  player: { id: blockedId, displayName },
  createdAt: DateTime.formatIso(createdAt)
})
