/** Reads the player id of an operator's request path. */
import { Effect, Schema } from "effect"
import { CurrentEnvironment } from "#rpc/auth"
import { PlayerNotFound } from "#rpc/errors/codes"
import { PlayerId } from "#rpc/ids"

const isPlayerId = Schema.is(PlayerId)

/** Returns the player reference; fails with `player_not_found` for text that is no player id. */
export const playerRef = Effect.fnUntraced(function* (playerId: string) {
  const { environmentId } = yield* CurrentEnvironment
  return isPlayerId(playerId) ? { environmentId, playerId } : yield* new PlayerNotFound()
})
