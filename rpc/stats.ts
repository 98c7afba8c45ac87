/**
 * Stats: numbers that players report. The config sets their aggregation, for all time and for the
 * day, the ISO week and the month of `resetTimeZone`.
 *
 * The service checks each value of a report separately. It returns a failing value in `rejected`
 * with a reason, and stores the others together.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { FeatureGate, PlayerToken, PublishableKey, Requests, RequiredFeature } from "./auth.ts"
import {
  IdempotencyInProgress,
  IdempotencyKeyReused,
  InvalidIdempotencyKey,
  NotFound,
  wire
} from "./errors/codes.ts"
import { feature, group, tag } from "./feature.ts"
import {
  forPlayer,
  keyParams,
  type MountParams,
  type PlayerMountParams,
  playerParams,
  projectParams,
  underKey,
  underProject
} from "./mounts.ts"
import { operation } from "./operations.ts"
import { Timestamp } from "./text.ts"

export const statKeysPerReport = 64

/** A stat's value for all time, today, this week (from Monday) and this month. */
export const PeriodValues = Schema.Struct({
  all: Schema.Finite,
  daily: Schema.Finite,
  weekly: Schema.Finite,
  monthly: Schema.Finite
}).annotate({
  identifier: "PeriodValues",
  description: "A stat's value for all time, today, this week (from Monday) and this month."
})
export type PeriodValues = typeof PeriodValues.Type

/**
 * Reason why a value was not stored. Either the config has no such stat, the value is above
 * `maxPerSubmit` or outside a rule's range, or no double holds the sum. Or the webhook rejected the
 * value, or failed while `onFailure` is `reject`.
 */
export const RejectionReason = Schema.Literals([
  "unknown_stat",
  "above_max_per_submit",
  "below_min",
  "above_max",
  "overflow",
  "verification_rejected",
  "verification_unavailable"
])
export type RejectionReason = typeof RejectionReason.Type

/** A value that was not stored. */
export const Rejection = Schema.Struct({
  stat: Schema.String,
  value: Schema.Finite,
  reason: RejectionReason
}).annotate({ identifier: "Rejection", description: "A value that was not stored, and why." })
export type Rejection = typeof Rejection.Type

/** Result of a report. `unlocked` is always empty in this version. */
export const StatsReported = Schema.Struct({
  stats: Schema.Record(Schema.String, PeriodValues),
  rejected: Schema.Array(Rejection),
  unlocked: Schema.Array(Schema.Struct({ key: Schema.String, unlockedAt: Timestamp }))
}).annotate({
  identifier: "StatsReported",
  description:
    "The new values, and those that were refused. `unlocked` is always empty in this version."
})
export type StatsReported = typeof StatsReported.Type

/** Values of 1 to 64 stats, each a finite number. */
export const StatsReport = Schema.Struct({
  stats: Schema.Record(Schema.String, Schema.Finite).check(
    Schema.isMinProperties(1),
    Schema.isMaxProperties(statKeysPerReport)
  )
})

/** All-time values; a stat that was never reported is absent. */
export const StatsRead = Schema.Struct({
  stats: Schema.Record(Schema.String, Schema.Finite)
}).annotate({
  identifier: "StatsRead",
  description: "All-time values. A stat that was never reported is absent."
})

const statsOf = <Id extends string, P extends PlayerMountParams>(id: Id, params: P) =>
  group(
    id,
    "games",
    "Stats",
    "Numbers that the signed-in player reports, combined by the rules in the config."
  )
    .add(
      HttpApiEndpoint.get("read", "/stats", { params, success: StatsRead }).annotateMerge(
        operation("Read the player's all-time stats", { functions: true })
      ),
      HttpApiEndpoint.post("report", "/stats", {
        params,
        headers: { "idempotency-key": Schema.optionalKey(Schema.String) },
        payload: StatsReport,
        success: StatsReported,
        error: [
          wire(NotFound),
          wire(InvalidIdempotencyKey),
          wire(IdempotencyKeyReused),
          wire(IdempotencyInProgress)
        ]
      }).annotateMerge(operation("Report stats", { functions: true }))
    )
    .annotateEndpoints(RequiredFeature, "stats")

/**
 * `/v1/stats`: the signed-in player's stats. A report may carry an `Idempotency-Key`: for 24 hours the
 * same key with the same body returns the first response and changes nothing. Above
 * `integrity.stats.maxSubmitsPerMinute` reports per player, a report gets 429 `rate_limited` and
 * changes nothing.
 */
export class StatsApi extends statsOf("stats", keyParams)
  .prefix("/v1")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}

/** `/v1/admin/players/:playerId/stats`: the stats of any player, for your server and for functions. */
export class PlayerStatsApi extends forPlayer(statsOf("playerStats", playerParams)).annotateMerge(
  tag(
    "server",
    "Stats of players",
    "Stats of any player, without the rate limits of players. For your own server, with the environment's secret key."
  )
) {}

/** The signing secret of an environment's stats webhook: `whsec_...`. */
export const WebhookSecret = Schema.Struct({ secret: Schema.String }).annotate({
  identifier: "WebhookSecret",
  description: "The secret that signs calls to the stats webhook."
})

const integrity = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  group(
    id,
    "server",
    "Integrity webhook",
    "The secret that signs calls to the stats integrity webhook."
  ).add(
    HttpApiEndpoint.get("webhookSecret", "/integrity/webhook-secret", {
      params,
      success: WebhookSecret
    }).annotate(OpenApi.Summary, "Read the signing secret of the stats webhook"),
    HttpApiEndpoint.post("rotateWebhookSecret", "/integrity/webhook-secret", {
      params,
      success: WebhookSecret
    }).annotateMerge(
      operation("Replace the signing secret of the stats webhook", {
        audit: "webhookSecret.rotate"
      })
    )
  )

/**
 * `integrity/webhook-secret`: the signing secret of `Svc-Signature`. It is created when it is first
 * read. A rotation replaces it on all nodes within a second; during that second, the developer's
 * server should accept both secrets.
 */
export class IntegrityApi extends underKey(integrity("integrity", keyParams)) {}

/** The same endpoints for the developers of the project. */
export class ProjectIntegrityApi extends underProject(
  integrity("projectIntegrity", projectParams)
) {}

export const statsFeature = feature({
  word: "stats",
  groups: [StatsApi, PlayerStatsApi, IntegrityApi, ProjectIntegrityApi],
  playerLimits: ["stats"],
  exported: {
    stats: Schema.Record(Schema.String, Schema.Finite),
    rejectedStats: Schema.Array(
      Schema.Struct({
        stat: Schema.String,
        value: Schema.Finite,
        reason: Schema.String,
        createdAt: Timestamp
      })
    )
  }
})
