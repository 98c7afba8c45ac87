/**
 * A player's own bans and appeals. Each ban allows one appeal. A player without a session appeals with
 * the refresh token that the ban revoked.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiSchema, OpenApi } from "effect/http-api"
import { OpenToBanned, PlayerRate, PlayerToken, PublishableKey, Requests } from "./auth.ts"
import {
  AlreadyAppealed,
  InvalidRefreshToken,
  NotFound,
  SanctionInactive,
  SessionRevoked,
  wire
} from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { SanctionId } from "./ids.ts"
import { RefreshToken } from "./sessions.ts"
import { textUpTo, Timestamp } from "./text.ts"
import { secondsPerHour } from "./units.ts"

const appealMaxCharacters = 2000

/** Appeals of one player, or of one session. */
export const appealWindow = { limit: 5, seconds: secondsPerHour } as const

export const AppealStatus = Schema.Literals(["open", "accepted", "rejected"])
export type AppealStatus = typeof AppealStatus.Type

/**
 * A ban. `note` is the operator's message to the player. Without `expiresAt` the ban lasts until it is
 * lifted. `appeal` is absent until the player appeals; `response` is the operator's reply.
 */
export const Sanction = Schema.Struct({
  id: SanctionId,
  kind: Schema.Literal("ban"),
  active: Schema.Boolean,
  note: Schema.NullOr(Schema.String),
  createdAt: Timestamp,
  expiresAt: Schema.NullOr(Timestamp),
  liftedAt: Schema.NullOr(Timestamp),
  appeal: Schema.optionalKey(
    Schema.Struct({
      status: AppealStatus,
      message: Schema.String,
      createdAt: Timestamp,
      response: Schema.NullOr(Schema.String)
    })
  )
}).annotate({
  identifier: "Sanction",
  description:
    "A ban. Without `expiresAt` it lasts until it is lifted. `appeal` is absent until the player appeals."
})
export type Sanction = typeof Sanction.Type

const Message = textUpTo(appealMaxCharacters)

const Appealed = Schema.Struct({ sanction: Sanction })
  .annotate({ identifier: "Appealed", description: "The ban with its appeal." })
  .pipe(HttpApiSchema.status(201))

/** `/v1/players/me/sanctions`: the signed-in player's own bans. */
export class SanctionsApi extends group(
  "sanctions",
  "players",
  "Sanctions",
  "Bans of the signed-in player, and appeals against them."
)
  .add(
    HttpApiEndpoint.get("list", "/sanctions", {
      success: Schema.Struct({ sanctions: Schema.Array(Sanction) }).annotate({
        identifier: "SanctionList",
        description: "The player's bans, newest first."
      })
    }).annotate(OpenApi.Summary, "List the player's own bans, newest first"),
    HttpApiEndpoint.post("appeal", "/sanctions/:sanctionId/appeal", {
      params: { sanctionId: Schema.String },
      payload: Schema.Struct({ message: Message }),
      success: Appealed,
      error: [wire(NotFound), wire(AlreadyAppealed), wire(SanctionInactive)]
    })
      .annotate(OpenToBanned, true)
      .annotate(PlayerRate, { ...appealWindow, name: "appeal" })
      .annotate(OpenApi.Summary, "Appeal against a ban")
  )
  .prefix("/v1/players/me")
  .middleware(Requests)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}

/** `/v1/auth/appeal`: for a player whose sessions the ban has revoked. */
export class AppealsApi extends group(
  "appeals",
  "players",
  "Appeals",
  "Appeals of a banned player who can no longer sign in."
)
  .add(
    HttpApiEndpoint.post("appeal", "/appeal", {
      payload: Schema.Struct({
        ...RefreshToken.fields,
        sanctionId: Schema.optionalKey(Schema.String),
        message: Message
      }),
      success: Appealed,
      error: [
        wire(InvalidRefreshToken),
        wire(SessionRevoked),
        wire(NotFound),
        wire(AlreadyAppealed),
        wire(SanctionInactive)
      ]
    }).annotate(OpenApi.Summary, "Appeal with the refresh token that the ban has revoked")
  )
  .prefix("/v1/auth")
  .middleware(Requests)
  .middleware(PublishableKey) {}

export const appealsFeature = feature({
  word: "appeals",
  groups: [SanctionsApi, AppealsApi],
  exported: {
    sanctions: Schema.Array(Sanction),
    appeals: Schema.Array(
      Schema.Struct({
        sanctionId: SanctionId,
        status: AppealStatus,
        message: Schema.String,
        createdAt: Timestamp,
        response: Schema.NullOr(Schema.String)
      })
    )
  }
})
