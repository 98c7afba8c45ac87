/** Stats over HTTP: `/v1/stats` for players, the webhook's secret for operators. */
import { Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"

import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { StatsReported } from "#rpc/stats"
import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { requireCredentials } from "#server/platform/credential-check"
import { Idempotency } from "#server/platform/idempotency"
import { withRetryAfter } from "#server/platform/throttle-guard"
import { Audit } from "../audit/service.ts"
import { StatReports } from "./service.ts"
import { WebhookSecrets } from "./webhook-secrets.ts"

/** The handlers of stats, for the player and for a server that acts for it. */
const makeStats = Effect.gen(function* () {
  const reports = yield* StatReports
  const idempotency = yield* Idempotency
  return {
    read: Effect.fnUntraced(function* () {
      return { stats: yield* reports.totals(yield* CurrentPlayer) }
    }),
    report: Effect.fnUntraced(function* ({
      endpoint,
      headers,
      payload
    }: RequestOf<"stats", "report">) {
      const environment = yield* CurrentEnvironment
      const player = yield* CurrentPlayer
      const submission = { environment, player, values: payload.stats }
      const key = headers["idempotency-key"]
      // The limit is of players: a server that acts for one has no session.
      const checkRate =
        player.sessionId === undefined ? Effect.void : reports.checkRateLimit(submission)
      // A retry that finds the response of its first attempt is no further report.
      const prepare = withRetryAfter(Effect.andThen(checkRate, reports.prepare(submission))).pipe(
        Effect.tap(requireCredentials)
      )
      if (key === undefined) {
        const stored = yield* yield* prepare
        // Skips the response encoder: it would check up to 64 stats that were just built.
        return HttpServerResponse.jsonUnsafe(stored)
      }
      const { environmentId, playerId } = player
      // The keys of a server and those of the player are apart: the path is that of the endpoint.
      const path = `${endpoint.method} ${endpoint.path}`
      const request = { environmentId, caller: playerId, path, key, body: payload }
      return yield* idempotency.once(request, StatsReported, prepare)
    })
  }
})

const makeIntegrity = Effect.gen(function* () {
  const audit = yield* Audit
  const secrets = yield* WebhookSecrets
  const toResponse = (secret: string) => ({ secret })
  return {
    webhookSecret: () =>
      Effect.flatMap(CurrentEnvironment, ({ environmentId }) =>
        Effect.map(secrets.current(environmentId), toResponse)
      ),
    rotateWebhookSecret: Effect.fnUntraced(function* ({
      endpoint
    }: RequestOf<"integrity", "rotateWebhookSecret">) {
      const { environmentId } = yield* CurrentEnvironment
      const rotate = audit.recordOperation(endpoint, secrets.rotate(environmentId), () => ({
        target: { kind: "environment", id: environmentId }
      }))
      return toResponse(yield* rotate)
    })
  }
})

/** The groups `stats`, `playerStats`, `integrity` and `projectIntegrity`. */
export const StatsHttp = Layer.merge(
  mounted(makeStats, (all) => [
    apiGroup(Api, "stats", (handlers) => handlers.handleAll(all)),
    apiGroup(Api, "playerStats", (handlers) => handlers.handleAll(all))
  ]),
  mounted(makeIntegrity, (all) => [
    apiGroup(Api, "integrity", (handlers) => handlers.handleAll(all)),
    apiGroup(Api, "projectIntegrity", (handlers) => handlers.handleAll(all))
  ])
)
