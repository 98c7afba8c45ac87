/**
 * Access of pages to functions (CORS). The service refuses origins that `web.allowedOrigins` does not have,
 * answers the preflights of browsers, and lets pages read responses. A deployment with `cors: false` does
 * all of this itself.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Cache, Effect } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import type { EnvironmentId } from "#rpc/ids"
import { http } from "#rpc/limits"
import { FunctionsDeploymentRepository } from "#sql/functions/deployments"
import { Invalidation } from "#server/platform/invalidation"
import { makeValueCache } from "#server/platform/value-cache"
import { Configs } from "../config/service.ts"
import { Origins } from "../hosting/origins.ts"
import type { PageAccess } from "./host/headers.ts"

/** Returns a function that says whether the service answers pages for the live version. */
const makeIsServed = Effect.gen(function* () {
  const deployments = yield* FunctionsDeploymentRepository
  const invalidation = yield* Invalidation
  const cached = yield* makeValueCache({
    capacity: 1000,
    timeToLive: "10 seconds",
    lookup: (environmentId: EnvironmentId) => deployments.hasCors(environmentId)
  })
  yield* invalidation.subscribe(({ kind }) =>
    kind === "functions" || kind === "everything" ? Cache.invalidateAll(cached) : Effect.void
  )
  return (environmentId: EnvironmentId) => Cache.get(cached, environmentId)
})

export const makePageAccess = Effect.gen(function* () {
  const configs = yield* Configs
  const isServed = yield* makeIsServed
  const origins = yield* Origins
  return {
    isServed,
    /**
     * Returns what a response says to the browser; undefined if the code does that. Fails for an origin
     * that may not call.
     */
    check: Effect.fnUntraced(function* (
      environment: Pick<EnvironmentCaller, "environmentId" | "name">,
      origin: string | undefined
    ) {
      const { environmentId } = environment
      if (!(yield* isServed(environmentId))) return undefined
      // Pages of functions below the base URL have no origin, and they call their own functions.
      if (origin !== "null") yield* origins.check(environment, origin)
      const { config } = yield* configs.current(environmentId)
      const access: PageAccess = {
        // Any site can make a page without an origin: with "*" such a page never gets credentials.
        allowOrigin: config.web.allowedOrigins.length === 0 || origin === "null" ? "*" : origin
      }
      return access
    })
  }
})

/** Whether a browser asks if a page of another origin may send a request. */
export const isPreflight = ({ headers, method }: IncomingMessage): boolean =>
  method === "OPTIONS" &&
  headers.origin !== undefined &&
  headers["access-control-request-method"] !== undefined

/**
 * Allows a request. An origin that may not call is refused there, where its page can read why, as it is
 * by the API.
 */
export const allowRequest = ({ headers }: IncomingMessage, response: ServerResponse): void => {
  const asked = headers["access-control-request-headers"]
  response.writeHead(204, {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": headers["access-control-request-method"],
    ...(asked === undefined ? {} : { "access-control-allow-headers": asked }),
    "access-control-max-age": String(http.corsMaxAgeSeconds),
    vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
  })
  response.end()
}
