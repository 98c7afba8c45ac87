/**
 * Stats (spec sections 2.1, 2.2 and 4.3, decisions 3.4.4-7): numbers that players report, combined as
 * the config says, for all time and for the day, the ISO week and the month of `resetTimeZone`.
 *
 * A report is checked value by value; a value that fails comes back in `rejected` with its reason,
 * and the others are stored all the same, together.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { FeatureGate, PlayerToken, PublishableKey, Requests, RequiredFeature } from "./auth.ts"
import {
  IdempotencyInProgress,
  IdempotencyKeyReused,
  InvalidIdempotencyKey,
  NotFound,
  wire
} from "./errors/codes.ts"
import { stats } from "./limits.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "./mounts.ts"

/** A stat's value for all time, today, this week (from Monday) and this month. */
export const PeriodValues = Schema.Struct({
  all: Schema.Finite,
  daily: Schema.Finite,
  weekly: Schema.Finite,
  monthly: Schema.Finite
})
export type PeriodValues = typeof PeriodValues.Type

/**
 * Why a value was not stored: the config has no such stat; above `maxPerSubmit`; outside a rule's
 * range; refused by the developer's server; that server did not answer and `onFailure` is `reject`.
 */
export const RejectionReason = Schema.Literals([
  "unknown_stat",
  "above_max_per_submit",
  "below_min",
  "above_max",
  "verification_rejected",
  "verification_unavailable"
])
export type RejectionReason = typeof RejectionReason.Type

/** A value that was not stored. */
export const Rejection = Schema.Struct({
  stat: Schema.String,
  value: Schema.Finite,
  reason: RejectionReason
})
export type Rejection = typeof Rejection.Type

/** What a report came to. `unlocked` is always empty in this version. */
export const StatsReported = Schema.Struct({
  stats: Schema.Record(Schema.String, PeriodValues),
  rejected: Schema.Array(Rejection),
  unlocked: Schema.Array(Schema.Struct({ key: Schema.String, unlockedAt: Schema.String }))
})
export type StatsReported = typeof StatsReported.Type

/** Values of 1 to 64 stats, each a finite number. */
export const StatsReport = Schema.Struct({
  stats: Schema.Record(Schema.String, Schema.Finite).check(
    Schema.isMinProperties(1),
    Schema.isMaxProperties(stats.keysPerReport)
  )
})

/** Values for all time; a stat that was never reported is absent. */
export const StatsRead = Schema.Struct({ stats: Schema.Record(Schema.String, Schema.Finite) })

/**
 * `/v1/stats`: the signed-in player's stats. A report may carry an `Idempotency-Key`: for 24 hours
 * the same key with the same body gets the first answer and changes nothing. Reports are limited to
 * `integrity.stats.maxSubmitsPerMinute` a player; beyond that 429 `rate_limited`, nothing applied.
 */
export class StatsApi extends HttpApiGroup.make("stats")
  .add(
    HttpApiEndpoint.get("read", "/stats", { success: StatsRead }).annotate(
      OpenApi.Summary,
      "The player's stats for all time"
    ),
    HttpApiEndpoint.post("report", "/stats", {
      headers: { "idempotency-key": Schema.optionalKey(Schema.String) },
      payload: StatsReport,
      success: StatsReported,
      error: [
        wire(NotFound),
        wire(InvalidIdempotencyKey),
        wire(IdempotencyKeyReused),
        wire(IdempotencyInProgress)
      ]
    }).annotate(OpenApi.Summary, "Report values of stats")
  )
  .annotateEndpoints(RequiredFeature, "stats")
  .prefix("/v1")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}

/** What signs the verification webhook of an environment: `whsec_...`. */
export const WebhookSecret = Schema.Struct({ secret: Schema.String })

const integrity = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  HttpApiGroup.make(id).add(
    HttpApiEndpoint.get("webhookSecret", "/integrity/webhook-secret", {
      params,
      success: WebhookSecret
    }).annotate(OpenApi.Summary, "The secret that signs the stats webhook"),
    HttpApiEndpoint.post("rotateWebhookSecret", "/integrity/webhook-secret", {
      params,
      success: WebhookSecret
    }).annotate(OpenApi.Summary, "Replace the secret that signs the stats webhook")
  )

/**
 * `integrity/webhook-secret`: the secret of `Svc-Signature` (spec section 5, rule 14). It is made
 * when it is first read. A rotation replaces it on every node within a second: a server that must
 * not miss a report takes both secrets meanwhile.
 */
export class IntegrityApi extends underKey(integrity("integrity", keyParams)) {}

/** The same for the developers of the project. */
export class ProjectIntegrityApi extends underProject(
  integrity("projectIntegrity", projectParams)
) {}
