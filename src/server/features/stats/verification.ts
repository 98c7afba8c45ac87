/**
 * The stats webhook (spec sections 5, rule 14, and 6; decisions 3.4.7): before values are stored, the
 * developer's server may refuse them. It is asked once, with a signature over time and body:
 *
 *     POST <webhook.url>
 *     Svc-Signature: t=<Unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>" under the webhook secret>
 *     { "type": "stats.verify", "environmentId", "playerId", "stats": { <key>: <value> }, "submittedAt" }
 *
 * It answers `{ "approve": true }` for all, or `{ "results": { <key>: true } }` for each: what is not
 * approved is rejected. A receiver should refuse a `t` that is more than 300 seconds old.
 */
import { createHmac } from "node:crypto"
import { Context, DateTime, Duration, Effect, Layer, Metric, Result, Schema } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import type { PlayerId } from "#rpc/ids"
import type { RejectionReason } from "#rpc/stats"
import { Outgoing } from "#server/platform/outgoing"
import { Settings } from "#server/platform/settings/settings"
import type { AcceptedValue } from "./rules.ts"
import { WebhookSecrets } from "./webhook-secrets.ts"

type Webhook = EnvironmentConfig["integrity"]["stats"]["webhook"]

/** Values that somebody wants to store. */
export interface VerificationRequest {
  readonly environment: EnvironmentCaller
  readonly playerId: PlayerId
  readonly values: ReadonlyArray<AcceptedValue>
}

/** Why a value may not be stored; undefined when it may. */
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

/** The value of `Svc-Signature`. */
export const signatureOf = (secret: string, unixSeconds: number, body: string): string => {
  const mac = createHmac("sha256", secret).update(`${unixSeconds}.${body}`).digest("hex")
  return `t=${unixSeconds},v1=${mac}`
}

/** How long developers' servers take, by what came of it. */
export const webhookSeconds = (outcome: "answered" | "failed") =>
  Metric.histogram("svc_webhook_duration_seconds", {
    description: "How long webhooks have taken, by what came of them.",
    attributes: { outcome },
    boundaries: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  })

const measured = <A, E, R>(asked: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.timed(Effect.result(asked)), ([duration, result]) => {
    const seconds = webhookSeconds(Result.isSuccess(result) ? "answered" : "failed")
    const told = Metric.update(seconds, Duration.toSeconds(duration))
    return Effect.andThen(told, Effect.fromResult(result))
  })

/** Asks developers' servers about values. */
export class Verification extends Context.Service<
  Verification,
  {
    readonly verify: (
      webhook: Webhook,
      submission: VerificationRequest
    ) => Effect.Effect<RejectionOf>
  }
>()("server/features/stats/verification/Verification") {
  static readonly layer = Layer.effect(
    Verification,
    Effect.gen(function* () {
      const outgoing = yield* Outgoing
      const secrets = yield* WebhookSecrets
      const { production } = yield* Settings

      const ask = Effect.fnUntraced(function* (
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
          // A service for many is no way to what runs beside it.
          allowLoopback: name === "development" && !production
        })
        const { approve = true, results } = yield* decodeResponse(text)
        const verdict: RejectionOf = (stat) =>
          approve && (results === undefined || results[stat] === true)
            ? undefined
            : "verification_rejected"
        return verdict
      })

      return Verification.of({
        verify: ({ onFailure, timeoutMs, url }, submission) => {
          if (url === undefined) return Effect.succeed(approveAll)
          const failed: RejectionOf =
            onFailure === "accept" ? approveAll : () => "verification_unavailable"
          return measured(ask(url, timeoutMs, submission)).pipe(
            Effect.catch((error) =>
              Effect.as(
                Effect.logDebug("A stats webhook failed", error.message).pipe(
                  Effect.annotateLogs({ environmentId: submission.environment.environmentId })
                ),
                failed
              )
            )
          )
        }
      })
    })
  )
}
