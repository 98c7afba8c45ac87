/** Referrals: which new players a share link may have brought. */
import { DateTime, Effect, Option } from "effect"
import type { PlayerCaller } from "#rpc/auth"
import { share } from "#rpc/share/limits"
import { PlayerRepository } from "#sql/players"

/**
 * Returns the creation time of a new player's account if it is younger than the link, which may have
 * brought the player.
 */
export const makeReferredAt = Effect.gen(function* () {
  const players = yield* PlayerRepository
  return Effect.fnUntraced(function* (
    player: PlayerCaller,
    linkMadeAt: DateTime.Utc,
    now: DateTime.Utc
  ) {
    const found = yield* players.find(player.environmentId, player.playerId)
    const since = DateTime.max(
      linkMadeAt,
      DateTime.subtract(now, { seconds: share.newPlayerSeconds })
    )
    return Option.filter(
      Option.map(found, ({ createdAt }) => createdAt),
      (createdAt) => DateTime.isGreaterThanOrEqualTo(createdAt, since)
    )
  })
})
