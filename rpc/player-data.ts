/**
 * All that is stored about a player, shown or deleted by the operator (spec section 4.8, decisions
 * 3.2.11-12). Deletion is for good: nothing stays but the id, so that it is never given again.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AgeProfile } from "./ages.ts"
import { AppealStatus, Sanction } from "./appeals.ts"
import { PlayerNotFound, wire } from "./errors.ts"
import { SanctionId } from "./ids.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "./operating.ts"
import { Identity, Player } from "./players.ts"
import { Save } from "./saves.ts"

/**
 * Everything that is stored about a player, as of `exportedAt`. `channels` names those that have the
 * player on a list; `rooms` those in which it has a seat; `days` those on which it was seen.
 */
export const PlayerExport = Schema.Struct({
  exportedAt: Schema.String,
  player: Player,
  age: AgeProfile,
  identities: Schema.Array(Identity),
  sessions: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      createdAt: Schema.String,
      lastUsedAt: Schema.String,
      /** Not recorded. */
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
      createdAt: Schema.String
    })
  ),
  sanctions: Schema.Array(Sanction),
  appeals: Schema.Array(
    Schema.Struct({
      sanctionId: SanctionId,
      status: AppealStatus,
      message: Schema.String,
      createdAt: Schema.String,
      response: Schema.NullOr(Schema.String)
    })
  ),
  days: Schema.Array(Schema.String),
  rooms: Schema.Array(Schema.String),
  channels: Schema.Array(Schema.String),
  shareLinks: Schema.Array(Schema.Never),
  xProfile: Schema.Null
})
export type PlayerExport = typeof PlayerExport.Type

const playerData = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  HttpApiGroup.make(id).add(
    HttpApiEndpoint.post("export", "/players/:playerId/export", {
      params: { ...params, playerId: Schema.String },
      success: PlayerExport,
      error: wire(PlayerNotFound)
    }).annotate(OpenApi.Summary, "Everything that is stored about a player"),
    HttpApiEndpoint.post("delete", "/players/:playerId/delete", {
      params: { ...params, playerId: Schema.String },
      success: Schema.Struct({ deleted: Schema.Literal(true) }),
      error: wire(PlayerNotFound)
    }).annotate(OpenApi.Summary, "Delete a player and everything that is stored about it")
  )

/** `players/:playerId/export` and `/delete`, for secret keys. */
export class PlayerDataApi extends underKey(playerData("playerData", keyParams)) {}

/** The same for the developers of the project. */
export class ProjectPlayerDataApi extends underProject(
  playerData("projectPlayerData", projectParams)
) {}
