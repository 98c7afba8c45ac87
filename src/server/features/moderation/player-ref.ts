/** The player that an operator's path names, in the environment of the request. */
import { Effect, Schema } from "effect"
import { CurrentEnvironment } from "#rpc/auth"
import { PlayerNotFound } from "#rpc/errors/codes"
import { PlayerId } from "#rpc/ids"

const isPlayerId = Schema.is(PlayerId)

/** What has not even the form of an id names nobody. */
export const playerRef = Effect.fnUntraced(function* (playerId: string) {
  const { environmentId } = yield* CurrentEnvironment
  return isPlayerId(playerId) ? { environmentId, playerId } : yield* new PlayerNotFound()
})
