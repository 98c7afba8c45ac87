/** Health, readiness and token signing keys, for load balancers, orchestrators and game servers. */
import { Effect, Exit } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { Api } from "#rpc/api"
import { orDieWithTimeout } from "#sql/database"
import { ThisNode } from "#entities/local-actors"
import { apiGroup } from "#server/platform/api-group"
import { EmbeddedState } from "#server/platform/database"
import { Readiness } from "#server/cluster/readiness"
import { AccessTokens } from "../sessions/tokens.ts"

const status = "ok"

const keySetMaxAgeSeconds = 600

/** The group `system`: `GET /healthz`, `GET /readyz` and the public signing keys (JWKS). */
export const SystemHttp = apiGroup(
  Api,
  "system",
  Effect.fn(function* (handlers) {
    const sql = yield* SqlClient.SqlClient
    const readiness = yield* Readiness
    const embedded = yield* EmbeddedState
    const { id: node } = yield* ThisNode
    const { jwks } = yield* AccessTokens
    const keySet = HttpApiSchema.withHeaders({
      body: jwks,
      headers: { "cache-control": `public, max-age=${keySetMaxAgeSeconds}` }
    })
    const database = Effect.map(Effect.exit(orDieWithTimeout(sql`select 1`)), Exit.isSuccess)
    return handlers.handleAll({
      health: () =>
        Effect.sync(() => {
          const state = embedded()
          return state === undefined ? { status } : { status, embeddedPostgres: state }
        }),
      ready: Effect.fnUntraced(function* () {
        const state = yield* Effect.all(
          { database, shards: readiness.shards, draining: readiness.draining },
          { concurrency: "unbounded" }
        )
        const ready = state.database && state.shards && !state.draining
        return ready ? { node, ready: true, ...state } : { node, ready: false, ...state }
      }),
      jwks: () => Effect.succeed(keySet)
    })
  })
)
