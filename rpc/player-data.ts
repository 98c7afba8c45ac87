/**
 * Export and deletion of everything that is stored about a player, by the player or by the operator.
 * Deletion is final. Only the id remains, so that it is never issued again.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { AgeBand, AgeProfile } from "./ages.ts"
import { AppealStatus, Sanction } from "./appeals.ts"
import { PlayerToken, PublishableKey, Requests } from "./auth.ts"
import { InvalidCredentials, NotFound, PlayerNotFound, wire } from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { LinkedIdentity } from "./identities.ts"
import { SanctionId } from "./ids.ts"
import { sessions as limits } from "./limits.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "./mounts.ts"
import { Player } from "./players.ts"
import { Deleted } from "./responses.ts"
import { Save } from "./saves.ts"
import { RefreshToken } from "./sessions.ts"
import { ShareData, ShareKind } from "./share/api.ts"
import { XProfile } from "./share/x-profiles.ts"
import { Timestamp } from "./text.ts"

/**
 * Export of everything that is stored about a player, as of `exportedAt`. `channels` names those
 * with the player on a list, `rooms` those with a seat of the player, `days` those on which the
 * player was active.
 */
export const PlayerExport = Schema.Struct({
  exportedAt: Timestamp,
  player: Player,
  /** The last visit that is stored; null before the first. */
  lastSeenAt: Schema.NullOr(Timestamp),
  /** `signalledAgeBand` is the strictest age band that a platform has reported. */
  age: Schema.Struct({ ...AgeProfile.fields, signalledAgeBand: Schema.NullOr(AgeBand) }),
  /** `subject` is the provider's id of the player; for `email`, the address. */
  identities: Schema.Array(Schema.Struct({ ...LinkedIdentity.fields, subject: Schema.String })),
  /** The player's consent to news, and its time; null before any choice. */
  news: Schema.NullOr(Schema.Struct({ optIn: Schema.Boolean, chosenAt: Timestamp })),
  sessions: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      createdAt: Timestamp,
      lastUsedAt: Timestamp,
      /** User agent, always null: the service does not record it. */
      userAgent: Schema.Null
    })
  ),
  saves: Schema.Array(Save),
  stats: Schema.Record(Schema.String, Schema.Finite),
  rejectedStats: Schema.Array(
    Schema.Struct({
      stat: Schema.String,
      value: Schema.Finite,
      reason: Schema.String,
      createdAt: Timestamp
    })
  ),
  sanctions: Schema.Array(Sanction),
  appeals: Schema.Array(
    Schema.Struct({
      sanctionId: SanctionId,
      status: AppealStatus,
      message: Schema.String,
      createdAt: Timestamp,
      response: Schema.NullOr(Schema.String)
    })
  ),
  days: Schema.Array(Schema.String),
  rooms: Schema.Array(Schema.String),
  channels: Schema.Array(Schema.String),
  shareLinks: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      kind: ShareKind,
      score: Schema.NullOr(Schema.Finite),
      showName: Schema.Boolean,
      data: Schema.NullOr(ShareData),
      createdAt: Timestamp
    })
  ),
  xProfile: Schema.NullOr(XProfile)
}).annotate({
  identifier: "PlayerExport",
  description: "Everything that is stored about a player."
})
export type PlayerExport = typeof PlayerExport.Type

/** Confirms a deletion: the password for a player with an email, otherwise the refresh token. */
const DeletionProof = Schema.Struct({
  password: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(limits.passwordMaxCharacters))
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
export class PlayerDataApi extends group(
  "playerData",
  "players",
  "Player data",
  "Export and deletion of everything that is stored about the signed-in player."
)
  .add(
    HttpApiEndpoint.get("export", "/me/export", {
      success: PlayerExport,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "Export everything that is stored about the player"),
    HttpApiEndpoint.delete("delete", "/me", {
      payload: DeletionProof,
      success: Deleted,
      error: [wire(InvalidCredentials), wire(NotFound)]
    }).annotate(OpenApi.Summary, "Delete the player and everything that is stored about it")
  )
  .prefix("/v1/players")
  .middleware(Requests)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}

const playerData = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  group(id, "server", "Player data requests", "Export and deletion of any player's data.").add(
    HttpApiEndpoint.post("export", "/players/:playerId/export", {
      params: { ...params, playerId: Schema.String },
      success: PlayerExport,
      error: wire(PlayerNotFound)
    }).annotate(OpenApi.Summary, "Export everything that is stored about a player"),
    HttpApiEndpoint.post("delete", "/players/:playerId/delete", {
      params: { ...params, playerId: Schema.String },
      success: Deleted,
      error: wire(PlayerNotFound)
    }).annotate(OpenApi.Summary, "Delete a player and everything that is stored about it")
  )

/** `players/:playerId/export` and `/delete`, for secret keys. */
export class AdminPlayerDataApi extends underKey(playerData("adminPlayerData", keyParams)) {}

/** The same for the developers of the project. */
export class ProjectPlayerDataApi extends underProject(
  playerData("projectPlayerData", projectParams)
) {}

export const playerDataFeature = feature({
  word: "player-data",
  groups: [PlayerDataApi, AdminPlayerDataApi, ProjectPlayerDataApi],
  playerLimits: ["deletion", "export"]
})
