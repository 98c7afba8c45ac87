/**
 * Stats webhook: the developer's server may reject values before the service stores them. The service
 * sends one signed request without retries:
 *
 *     POST <webhook.url>
 *     Svc-Signature: t=<Unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>" under the webhook secret>
 *     { "type": "stats.verify", "environmentId", "playerId", "stats": { <key>: <value> }, "submittedAt" }
 *
 * The server replies with `{ "approve": true }` for all values, or `{ "results": { <key>: true } }` per
 * value. The service rejects a value without approval. A receiver should reject a `t` that is
 * more than 300 seconds from its clock, in the past or in the future.
 *
 * The service verifies the reports of one player one after another.
 */
import { createHmac } from "node:crypto"
import { Context, DateTime, Duration, Effect, Layer, Metric, Result, Schema } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { RateLimited, type Unavailable } from "#rpc/errors/codes"
import type { PlayerId } from "#rpc/ids"
import type { RejectionReason } from "#rpc/stats"
import { FairSemaphore } from "#server/platform/fair-semaphore"
import { checkUrl, Outgoing, outgoingLimits } from "#server/platform/outgoing"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "../config/service.ts"
import type { AcceptedValue } from "./rules.ts"
import { WebhookSecrets } from "./webhook-secrets.ts"

type Webhook = EnvironmentConfig["integrity"]["stats"]["webhook"]

/** Values to verify before the service stores them. */
export interface VerificationRequest {
  readonly environment: EnvironmentCaller
  readonly playerId: PlayerId
  readonly values: ReadonlyArray<AcceptedValue>
}

/** Returns the reason of a rejected value; undefined for an approved one. */
export type RejectionOf = (stat: string) => RejectionReason | undefined

const WebhookResponse = Schema.fromJsonString(
  Schema.Struct({
    approve: Schema.optionalKey(Schema.Boolean),
    results: Schema.optionalKey(Schema.Record(Schema.String, Schema.Boolean))
  }).check(
    Schema.makeFilter(({ approve, results }) => approve !== undefined || results !== undefined, {
      expected: "approve or results"
    })
  )
)
const decodeResponse = Schema.decodeUnknownEffect(WebhookResponse)

const approveAll: RejectionOf = () => undefined

/** Fails because a player sends reports faster than the webhook replies. */
const tooManyReports = Effect.fail(new RateLimited({ details: { retryAfterSeconds: 1 } }))

/** Builds the value of the `Svc-Signature` header. */
export const signatureOf = (secret: string, unixSeconds: number, body: string): string => {
  const mac = createHmac("sha256", secret).update(`${unixSeconds}.${body}`).digest("hex")
  return `t=${unixSeconds},v1=${mac}`
}

/** Duration of webhook requests, by outcome. */
export const webhookSeconds = (outcome: "answered" | "failed") =>
  Metric.histogram("svc_webhook_duration_seconds", {
    description: "Duration of stats webhook requests, by outcome.",
    attributes: { outcome },
    boundaries: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  })

const withDurationMetric = <A, E, R>(request: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.timed(Effect.result(request)), ([duration, result]) => {
    const histogram = webhookSeconds(Result.isSuccess(result) ? "answered" : "failed")
    const record = Metric.update(histogram, Duration.toSeconds(duration))
    return Effect.andThen(record, Effect.fromResult(result))
  })

/** Sends values to the webhook of an environment. */
export class Verification extends Context.Service<
  Verification,
  {
    /**
     * Sends values to the webhook and returns its verdict. `onFailure` of the config applies when the
     * developer's server fails. A report that this process has no capacity to verify fails. The service
     * neither accepts nor rejects it.
     */
    readonly verify: (
      webhook: Webhook,
      submission: VerificationRequest
    ) => Effect.Effect<RejectionOf, RateLimited | Unavailable>
  }
>()("server/features/stats/verification/Verification") {
  static readonly layer = Layer.effect(
    Verification,
    Effect.gen(function* () {
      const outgoing = yield* Outgoing
      const secrets = yield* WebhookSecrets
      const { production } = yield* Settings
      const configs = yield* Configs
      yield* configs.addCheck((_environmentId, { integrity: { stats } }) =>
        Effect.sync(() => {
          if (stats.webhook?.url === undefined) return []
          const checked = checkUrl(stats.webhook.url, !production)
          if (Result.isSuccess(checked)) return []
          const message = `cannot be called: ${checked.failure.message}. Name a public https address`
          return [{ path: "integrity.stats.webhook.url", message }]
        })
      )
      const underWay = new FairSemaphore({
        ...outgoingLimits.reportsPerPlayer,
        refuse: tooManyReports
      })

      const send = Effect.fnUntraced(function* (
        url: string,
        timeoutMillis: number,
        { environment, playerId, values }: VerificationRequest
      ) {
        const { environmentId, name } = environment
        const secret = yield* secrets.current(environmentId)
        const now = yield* DateTime.now
        const body = JSON.stringify({
          type: "stats.verify",
          environmentId,
          playerId,
          stats: Object.fromEntries(values.map(({ stat, value }) => [stat, value])),
          submittedAt: DateTime.formatIso(now)
        })
        const seconds = Math.floor(DateTime.toEpochMillis(now) / 1000)
        const text = yield* outgoing.post({
          url,
          body,
          headers: { "svc-signature": signatureOf(secret, seconds, body) },
          timeoutMillis,
          // In production, loopback would give developers access to processes on the service's host.
          allowLoopback: name === "development" && !production
        })
        const { approve = true, results } = yield* decodeResponse(text)
        const rejectionOf: RejectionOf = (stat) =>
          approve && (results === undefined || results[stat] === true)
            ? undefined
            : "verification_rejected"
        return rejectionOf
      })

      return Verification.of({
        verify: ({ onFailure, timeoutMs, url }, submission) => {
          if (url === undefined) return Effect.succeed(approveAll)
          const fallback: RejectionOf =
            onFailure === "accept" ? approveAll : () => "verification_unavailable"
          const { environmentId } = submission.environment
          const logAndFallBack = ({ message }: { readonly message: string }) =>
            Effect.logDebug("Failed to verify stats with the webhook", message).pipe(
              Effect.annotateLogs({ environmentId }),
              Effect.as(fallback)
            )
          return withDurationMetric(send(url, timeoutMs, submission)).pipe(
            Effect.catchTags({ OutgoingError: logAndFallBack, SchemaError: logAndFallBack }),
            underWay.withPermit(`${environmentId}/${submission.playerId}`)
          )
        }
      })
    })
  )
}
