/**
 * All that is stored about a player, shown or deleted by the player itself (spec section 4.1) or the
 * operator (spec section 4.8, decisions 3.2.11-12). Deletion is for good: nothing stays but the id, so
 * that it is never given again.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AgeBand, AgeProfile } from "./ages.ts"
import { AppealStatus, Sanction } from "./appeals.ts"
import { PlayerToken, PublishableKey, Requests } from "./auth.ts"
import { InvalidCredentials, NotFound, PlayerNotFound, wire } from "./errors/codes.ts"
import { LinkedIdentity } from "./identities.ts"
import { SanctionId } from "./ids.ts"
import { sessions as limits } from "./limits.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "./mounts.ts"
import { Player } from "./players.ts"
import { Save } from "./saves.ts"
import { RefreshToken } from "./sessions.ts"

/**
 * Everything that is stored about a player, as of `exportedAt`. `channels` names those that have the
 * player on a list; `rooms` those in which it has a seat; `days` those on which it was seen.
 */
export const PlayerExport = Schema.Struct({
  exportedAt: Schema.String,
  player: Player,
  /** `signalledAgeBand` is the strictest that a platform has told. */
  age: Schema.Struct({ ...AgeProfile.fields, signalledAgeBand: Schema.NullOr(AgeBand) }),
  /** `subject` is the id that the provider knows the player by; of `email`, the address. */
  identities: Schema.Array(Schema.Struct({ ...LinkedIdentity.fields, subject: Schema.String })),
  /** Whether the player wants news, and since when; null when it has not chosen. */
  news: Schema.NullOr(Schema.Struct({ optIn: Schema.Boolean, chosenAt: Schema.String })),
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

const Deleted = Schema.Struct({ deleted: Schema.Literal(true) })

/** A player with an email proves itself by the password, any other by its refresh token. */
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

/** `/v1/players/me`: all that is stored about the signed-in player. */
export class PlayerDataApi extends HttpApiGroup.make("playerData")
  .add(
    HttpApiEndpoint.get("export", "/me/export", {
      success: PlayerExport,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "Everything that is stored about the player"),
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
  HttpApiGroup.make(id).add(
    HttpApiEndpoint.post("export", "/players/:playerId/export", {
      params: { ...params, playerId: Schema.String },
      success: PlayerExport,
      error: wire(PlayerNotFound)
    }).annotate(OpenApi.Summary, "Everything that is stored about a player"),
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
