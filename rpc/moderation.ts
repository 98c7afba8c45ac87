/**
 * Moderation for operators: bans, appeals, token verification and age groups. Publishable keys have no
 * access.
 */
import { Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import { AgeBand, AgeProfile } from "./ages.ts"
import { AppealStatus, Sanction } from "./appeals.ts"
import {
  AlreadyResolved,
  InvalidToken,
  NotFound,
  PlayerNotFound,
  TokenExpired,
  wire
} from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { AppealId, PlayerId, SanctionId } from "./ids.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "./mounts.ts"
import { operation, type OperationFacts } from "./operations.ts"
import { PageLimit } from "./pages.ts"
import { textUpTo, Timestamp } from "./text.ts"

const reasonMaxCharacters = 500
const noteMaxCharacters = 500

/** 366 days. */
const banHoursMax = 8784
const responseMaxCharacters = 2000

/** A player after a ban or unban. `revokedSessions` counts the sessions that this call revoked. */
export const BanResult = Schema.Struct({
  player: Schema.Struct({
    id: PlayerId,
    banned: Schema.Boolean,
    bannedAt: Schema.NullOr(Timestamp),
    banReason: Schema.NullOr(Schema.String),
    banExpiresAt: Schema.NullOr(Timestamp),
    revokedSessions: Schema.Int
  })
}).annotate({
  identifier: "BanResult",
  description:
    "A player after a ban or unban. `revokedSessions` counts the sessions that this call revoked."
})
export type BanResult = typeof BanResult.Type

/**
 * Ban request. Operators see `reason`, the player sees `publicNote`. Without `durationHours` the
 * ban lasts until it is lifted; only a secret key may set it.
 */
export const Ban = Schema.Struct({
  reason: Schema.optionalKey(textUpTo(reasonMaxCharacters)),
  publicNote: Schema.optionalKey(textUpTo(noteMaxCharacters)),
  durationHours: Schema.optionalKey(
    Schema.Finite.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(banHoursMax))
  )
})
export type Ban = typeof Ban.Type

/** The operators' view of a ban. */
export const OperatorSanction = Schema.Struct({
  ...Sanction.fields,
  reason: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "OperatorSanction",
  description: "A ban as operators see it, with its reason."
})
export type OperatorSanction = typeof OperatorSanction.Type

/** The operators' view of an appeal, with the ban and the player. */
export const AppealItem = Schema.Struct({
  id: AppealId,
  sanctionId: SanctionId,
  player: Schema.Struct({ id: PlayerId, displayName: Schema.String }),
  message: Schema.String,
  status: AppealStatus,
  response: Schema.NullOr(Schema.String),
  createdAt: Timestamp,
  resolvedAt: Schema.NullOr(Timestamp),
  sanction: OperatorSanction
}).annotate({
  identifier: "AppealItem",
  description: "An appeal as operators see it, with the ban and the player."
})
export type AppealItem = typeof AppealItem.Type

/** The player of a verified access token. */
const VerifiedToken = Schema.Struct({
  player: Schema.Struct({ id: PlayerId, displayName: Schema.String, banned: Schema.Boolean })
}).annotate({
  identifier: "VerifiedToken",
  description: "The player of a verified access token. Check `banned` yourself."
})

const AppealPage = Schema.Struct({
  appeals: Schema.Array(AppealItem),
  nextCursor: Schema.NullOr(Schema.String)
}).annotate({ identifier: "AppealPage", description: "A page of appeals, newest first." })

const ResolvedAppeal = Schema.Struct({ appeal: AppealItem }).annotate({
  identifier: "ResolvedAppeal",
  description: "The appeal after the decision."
})

/** Cursor of a page: 0 for open or 1 for closed appeals, then the last appeal's id. */
const cursorPattern = /^[01]apl_[0-9A-HJKMNP-TV-Z]{26}$/

/** The operations, for the audit log, agents and functions. */
const operations = {
  ban: {
    audit: "player.ban",
    functions: true,
    tool: {
      name: "player_ban",
      description:
        "Ban a player: signs out every device and closes live connections at once. The player " +
        "sees publicNote, never reason. Without durationHours the ban lasts until it is lifted.",
      effect: "destroys",
      idempotent: true
    }
  },
  unban: {
    audit: "player.unban",
    functions: true,
    tool: { name: "player_unban", effect: "changes", idempotent: true }
  },
  age: { audit: "player.age" },
  verifyToken: { functions: true },
  appeals: { tool: { name: "appeals_list", effect: "reads" } },
  resolve: {
    audit: "appeal.resolve",
    tool: { name: "appeal_resolve", effect: "destroys" }
  }
} as const satisfies Record<string, OperationFacts>

const moderationOf = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  group(id, "server", "Moderation", "Bans, age bands, appeals and token verification.").add(
    HttpApiEndpoint.post("ban", "/players/:playerId/ban", {
      params: { ...params, playerId: Schema.String },
      payload: Ban,
      success: BanResult,
      error: wire(PlayerNotFound)
    }).annotateMerge(
      operation("Ban a player, or change the reason and expiry of the active ban", operations.ban)
    ),
    HttpApiEndpoint.post("unban", "/players/:playerId/unban", {
      params: { ...params, playerId: Schema.String },
      success: BanResult,
      error: wire(PlayerNotFound)
    }).annotateMerge(operation("Lift a player's ban", operations.unban)),
    HttpApiEndpoint.put("age", "/players/:playerId/age", {
      params: { ...params, playerId: Schema.String },
      payload: Schema.Struct({ band: AgeBand }),
      success: AgeProfile,
      error: wire(PlayerNotFound)
    }).annotateMerge(operation("Set the age group of a player", operations.age)),
    HttpApiEndpoint.post("verifyToken", "/players/verify-token", {
      params,
      payload: Schema.Struct({ token: Schema.String }),
      success: VerifiedToken,
      error: [wire(InvalidToken), wire(TokenExpired), wire(PlayerNotFound)]
    }).annotateMerge(
      operation(
        "Verify an access token and return its player, banned or not",
        operations.verifyToken
      )
    ),
    HttpApiEndpoint.get("appeals", "/appeals", {
      params,
      query: {
        status: Schema.optionalKey(AppealStatus),
        limit: Schema.optionalKey(PageLimit),
        cursor: Schema.optionalKey(
          Schema.String.check(
            Schema.isPattern(cursorPattern, {
              message: "Expected the nextCursor of a previous response"
            })
          )
        )
      },
      success: AppealPage
    }).annotateMerge(
      operation("List appeals against bans, open ones first, then oldest first", operations.appeals)
    ),
    HttpApiEndpoint.post("resolve", "/appeals/:appealId/resolve", {
      params: { ...params, appealId: Schema.String },
      payload: Schema.Struct({
        accept: Schema.Boolean,
        response: Schema.optionalKey(textUpTo(responseMaxCharacters))
      }),
      success: ResolvedAppeal,
      error: [wire(NotFound), wire(AlreadyResolved)]
    }).annotateMerge(operation("Resolve an appeal; accepting it lifts the ban", operations.resolve))
  )

/** Moderation endpoints for secret keys. */
export class ModerationApi extends underKey(moderationOf("moderation", keyParams)) {}

/** The same endpoints for the developers of the project. */
export class ProjectModerationApi extends underProject(
  moderationOf("projectModeration", projectParams)
) {}

export const moderationFeature = feature({
  word: "moderation",
  groups: [ModerationApi, ProjectModerationApi]
})
