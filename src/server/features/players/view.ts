/** The public form of a player row. */
import { DateTime } from "effect"
import type { Player } from "#rpc/players"
import type { PlayerRow } from "#sql/players"

/** A player as `/v1/players/me` and a session show it. */
export const playerView = (row: PlayerRow): Player => ({
  id: row.id,
  displayName: row.displayName,
  isGuest: row.isGuest,
  createdAt: DateTime.formatIso(row.createdAt),
  identities: (row.isGuest ? ["guest" as const] : row.methods).map((provider) => ({ provider })),
  emailVerified: row.emailVerified
})
