/**
 * Export and deletion of everything that is stored about a player, by the player or by the operator.
 * Deletion is final. Only the id remains, so that it is never issued again.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { PlayerRate, PlayerToken, PublishableKey, Requests } from "./auth.ts"
import { InvalidCredentials, NotFound, PlayerNotFound, wire } from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "./mounts.ts"
import { Deleted } from "./responses.ts"
import { RefreshToken, sessionLimits } from "./sessions.ts"
import { Timestamp } from "./text.ts"

/** Confirms a deletion: the password for a player with an email, otherwise the refresh token. */
const DeletionProof = Schema.Struct({
  password: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(sessionLimits.passwordMaxCharacters))
  ),
  refreshToken: Schema.optionalKey(RefreshToken.fields.refreshToken)
}).check(
  Schema.makeFilter(({ password, refreshToken }) =>
    password === undefined && refreshToken === undefined
      ? "Expected password or refreshToken"
      : undefined
  )
)
export type DeletionProof = typeof DeletionProof.Type

/** `/v1/players/me`: export and deletion by the signed-in player. */
const ownData = <S extends Schema.Top>(success: S) =>
  group(
    "playerData",
    "players",
    "Player data",
    "Export and deletion of everything that is stored about the signed-in player."
  )
    .add(
      HttpApiEndpoint.get("export", "/me/export", { success, error: wire(NotFound) })
        .annotate(PlayerRate, { burst: 10, seconds: 3600, name: "export" })
        .annotate(OpenApi.Summary, "Export everything that is stored about the player"),
      HttpApiEndpoint.delete("delete", "/me", {
        payload: DeletionProof,
        success: Deleted,
        error: [wire(InvalidCredentials), wire(NotFound)]
      }).annotate(OpenApi.Summary, "Delete the player and everything that is stored about it")
    )
    .prefix("/v1/players")
    .middleware(Requests)
    .middleware(PlayerToken)
    .middleware(PublishableKey)

/** `players/:playerId/export` and `/delete`, for secret keys and for the developers of the project. */
const dataOf = <Id extends string, P extends MountParams, S extends Schema.Top>(
  id: Id,
  params: P,
  success: S
) =>
  group(id, "server", "Player data requests", "Export and deletion of any player's data.").add(
    HttpApiEndpoint.post("export", "/players/:playerId/export", {
      params: { ...params, playerId: Schema.String },
      success,
      error: wire(PlayerNotFound)
    }).annotate(OpenApi.Summary, "Export everything that is stored about a player"),
    HttpApiEndpoint.post("delete", "/players/:playerId/delete", {
      params: { ...params, playerId: Schema.String },
      success: Deleted,
      error: wire(PlayerNotFound)
    }).annotate(OpenApi.Summary, "Delete a player and everything that is stored about it")
  )

/** The feature, with the properties that the others export. */
export const playerDataFeature = <F extends Schema.Struct.Fields>(exported: F) => {
  const PlayerExport = Schema.Struct({ exportedAt: Timestamp, ...exported }).annotate({
    identifier: "PlayerExport",
    description: "Everything that is stored about a player."
  })
  return feature({
    word: "player-data",
    groups: [
      ownData(PlayerExport),
      underKey(dataOf("adminPlayerData", keyParams, PlayerExport)),
      underProject(dataOf("projectPlayerData", projectParams, PlayerExport))
    ],
    playerLimits: ["deletion"]
  })
}
