/** Players: the users of an app. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { PlayerToken, PublishableKey, Requests } from "./auth.ts"
import { NotFound, PlayerNotFound, wire } from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { PlayerId } from "./ids.ts"
import { forPlayer, playerParams } from "./mounts.ts"
import { operation } from "./operations.ts"
import { nameUpTo, Timestamp } from "./text.ts"

export const displayNameMaxCharacters = 32

/** Name that others see: 1 to 32 characters. It need not be unique. */
export const DisplayName = nameUpTo(displayNameMaxCharacters)

/** A sign-in method; a guest has the single entry `guest`. */
export const Identity = Schema.Struct({ provider: Schema.String }).annotate({
  identifier: "Identity",
  description: "A sign-in method. A guest has the single entry `guest`."
})

/** A player as the player's own client sees it. Timestamps are ISO 8601 UTC. */
export const Player = Schema.Struct({
  id: PlayerId,
  displayName: Schema.String,
  isGuest: Schema.Boolean,
  createdAt: Timestamp,
  identities: Schema.Array(Identity),
  emailVerified: Schema.Boolean
}).annotate({ identifier: "Player", description: "A player as its own client sees it." })
export type Player = typeof Player.Type

/** Response of the endpoints that return the player. */
export const PlayerResponse = Schema.Struct({ player: Player }).annotate({
  identifier: "PlayerResponse",
  description: "The signed-in player."
})

/** `/v1/players`: the signed-in player's own account. */
export class PlayersApi extends group(
  "players",
  "players",
  "Players",
  "The profile of the signed-in player."
)
  .add(
    HttpApiEndpoint.get("me", "/me", { success: PlayerResponse, error: wire(NotFound) }).annotate(
      OpenApi.Summary,
      "Get the signed-in player"
    ),
    HttpApiEndpoint.patch("update", "/me", {
      payload: Schema.Struct({ displayName: DisplayName }),
      success: PlayerResponse,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "Rename the signed-in player")
  )
  .prefix("/v1/players")
  .middleware(Requests)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}

/** A player as a server sees it. */
const ServerPlayer = Schema.Struct({ ...Player.fields, banned: Schema.Boolean })

/** `/v1/admin/players/:playerId/profile` in the process: a player for functions. */
export class PlayerProfileApi extends forPlayer(
  HttpApiGroup.make("playerProfile").add(
    HttpApiEndpoint.get("read", "/profile", {
      params: playerParams,
      success: Schema.Struct({ player: ServerPlayer }),
      error: wire(PlayerNotFound)
    }).annotateMerge(operation("Get a player", { functions: true }))
  )
) {}

export const playersFeature = feature({
  word: "players",
  groups: [PlayersApi],
  inProcess: [PlayerProfileApi],
  playerLimits: ["player"],
  exported: {
    player: Player,
    /** The last visit that is stored; null before the first. */
    lastSeenAt: Schema.NullOr(Timestamp)
  }
})
