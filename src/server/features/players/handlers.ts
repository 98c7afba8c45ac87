/** `GET` and `PATCH /v1/players/me`, and any player for functions. */
import { Effect, Layer, Option } from "effect"
import { Api } from "#rpc/api"
import { CurrentPlayer } from "#rpc/auth"
import { NotFound, PlayerNotFound } from "#rpc/errors/codes"
import { InProcessApi } from "#rpc/in-process"
import { normalizeName } from "#rpc/text"
import { type PlayerRow, PlayerRepository } from "#sql/players"
import { apiGroup } from "#server/platform/api-group"
import { PlayerStatusCache } from "./status-cache.ts"
import { playerView } from "./view.ts"

const responseOf = Effect.fnUntraced(function* (row: Option.Option<PlayerRow>) {
  // An access token stays valid for up to 15 minutes after the player was deleted.
  if (Option.isNone(row)) return yield* new NotFound()
  return { player: playerView(row.value) }
})

const PlayersGroup = apiGroup(
  Api,
  "players",
  Effect.fn(function* (handlers) {
    const players = yield* PlayerRepository
    const statuses = yield* PlayerStatusCache
    return handlers.handleAll({
      me: Effect.fnUntraced(function* () {
        const { environmentId, playerId } = yield* CurrentPlayer
        return yield* responseOf(yield* players.find(environmentId, playerId))
      }),
      update: Effect.fnUntraced(function* ({ payload }) {
        const { environmentId, playerId } = yield* CurrentPlayer
        const displayName = normalizeName(payload.displayName)
        const renamed = yield* players.rename(environmentId, playerId, displayName)
        yield* statuses.invalidate(environmentId, playerId)
        return yield* responseOf(renamed)
      })
    })
  })
)

const ProfileGroup = apiGroup(
  InProcessApi,
  "playerProfile",
  Effect.fn(function* (handlers) {
    const players = yield* PlayerRepository
    const statuses = yield* PlayerStatusCache
    return handlers.handle(
      "read",
      Effect.fnUntraced(function* () {
        const { environmentId, playerId } = yield* CurrentPlayer
        const found = yield* players.find(environmentId, playerId)
        if (Option.isNone(found)) return yield* new PlayerNotFound()
        const status = yield* statuses.get(environmentId, playerId)
        return { player: { ...playerView(found.value), banned: status?.banned !== undefined } }
      })
    )
  })
)

/** The groups `players` and `playerProfile`. */
export const PlayersHttp = Layer.merge(PlayersGroup, ProfileGroup)
