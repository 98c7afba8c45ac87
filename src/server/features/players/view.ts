/** The public form of a player row. */
import { DateTime } from "effect"
import type { Player } from "#rpc/players"
import type { PlayerRow } from "#sql/players"

/** Returns the player's view of a row, for `/v1/players/me` and sessions. */
export const playerView = (row: PlayerRow): Player => ({
  id: row.id,
  displayName: row.displayName,
  isGuest: row.isGuest,
  createdAt: DateTime.formatIso(row.createdAt),
  identities: (row.isGuest ? ["guest" as const] : row.methods).map((provider) => ({ provider })),
  emailVerified: row.emailVerified
})
