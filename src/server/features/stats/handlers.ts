/** Stats over HTTP: `/v1/stats` for players, the webhook's secret for operators. */
import { Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { StatsReported } from "#rpc/stats"
import { apiGroup } from "#server/platform/api-group"
import { requireCredentials } from "#server/platform/credential-check"
import { Idempotency } from "#server/platform/idempotency"
import { withRetryAfter } from "#server/platform/throttle-guard"
import { Audit } from "../audit/service.ts"
import { StatReports } from "./service.ts"
import { WebhookSecrets } from "./webhook-secrets.ts"

const StatsGroup = apiGroup(
  Api,
  "stats",
  Effect.fn(function* (handlers) {
    const reports = yield* StatReports
    const idempotency = yield* Idempotency
    return handlers.handleAll({
      read: Effect.fnUntraced(function* () {
        return { stats: yield* reports.totals(yield* CurrentPlayer) }
      }),
      report: Effect.fnUntraced(function* ({ headers, payload }) {
        const environment = yield* CurrentEnvironment
        const player = yield* CurrentPlayer
        const submission = { environment, player, values: payload.stats }
        const key = headers["idempotency-key"]
        // A retry that finds the response of its first attempt is no further report.
        const prepare = withRetryAfter(
          Effect.andThen(reports.checkRateLimit(submission), reports.prepare(submission))
        ).pipe(Effect.tap(requireCredentials))
        if (key === undefined) {
          const stored = yield* yield* prepare
          // Skips the response encoder: it would check up to 64 stats that were just built.
          return HttpServerResponse.jsonUnsafe(stored)
        }
        const { environmentId, playerId } = player
        const request = { environmentId, caller: playerId, path: "POST /v1/stats", key }
        return yield* idempotency.once({ ...request, body: payload }, StatsReported, prepare)
      })
    })
  })
)

const makeIntegrity = Effect.gen(function* () {
  const audit = yield* Audit
  const secrets = yield* WebhookSecrets
  const toResponse = (secret: string) => ({ secret })
  return {
    webhookSecret: () =>
      Effect.flatMap(CurrentEnvironment, ({ environmentId }) =>
        Effect.map(secrets.current(environmentId), toResponse)
      ),
    rotateWebhookSecret: Effect.fnUntraced(function* () {
      const environment = yield* CurrentEnvironment
      const { environmentId } = environment
      const rotate = audit.recordChange(environment, secrets.rotate(environmentId), () => ({
        action: "webhookSecret.rotate",
        target: { kind: "environment", id: environmentId }
      }))
      return toResponse(yield* rotate)
    })
  }
})

/** The groups `stats`, `integrity` and `projectIntegrity`. */
export const StatsHttp = Layer.mergeAll(
  StatsGroup,
  apiGroup(Api, "integrity", (handlers) =>
    Effect.map(makeIntegrity, (all) => handlers.handleAll(all))
  ),
  apiGroup(Api, "projectIntegrity", (handlers) =>
    Effect.map(makeIntegrity, (all) => handlers.handleAll(all))
  )
)
