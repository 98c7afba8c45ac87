/** Players: the signed-in player's own account (spec sections 2.1 and 4.1). */
import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentPlayer } from "#rpc/auth"
import { NotFound } from "#rpc/errors/codes"
import { normalizeDisplayName } from "#rpc/players"
import { type PlayerRow, PlayerRepository } from "#sql/players"
import { PlayerStatusCache } from "./status-cache.ts"
import { playerView } from "./view.ts"

const answer = Effect.fnUntraced(function* (row: Option.Option<PlayerRow>) {
  // A token outlives its player by up to fifteen minutes.
  if (Option.isNone(row)) return yield* new NotFound()
  return { player: playerView(row.value) }
})

/** `GET` and `PATCH /v1/players/me`. */
export const PlayersHttp = HttpApiBuilder.group(
  Api,
  "players",
  Effect.fn(function* (handlers) {
    const players = yield* PlayerRepository
    const standings = yield* PlayerStatusCache
    return handlers.handleAll({
      me: Effect.fnUntraced(function* () {
        const { environmentId, playerId } = yield* CurrentPlayer
        return yield* answer(yield* players.find(environmentId, playerId))
      }),
      update: Effect.fnUntraced(function* ({ payload }) {
        const { environmentId, playerId } = yield* CurrentPlayer
        const displayName = normalizeDisplayName(payload.displayName)
        const renamed = yield* players.rename(environmentId, playerId, displayName)
        yield* standings.invalidate(environmentId, playerId)
        return yield* answer(renamed)
      })
    })
  })
)
