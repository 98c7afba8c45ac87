/** Throttles as HTTP shows them: 429 `rate_limited` with `Retry-After` (decisions 3.1.6, 3.1.14). */
import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import type { Throttle } from "#rpc/limits"
import type { Throttles } from "../throttles.ts"

/** Takes a token from a bucket; a refusal tells the client when to come again. */
export const throttled = (throttles: Throttles["Service"], throttle: Throttle, key: string) =>
  Effect.tapError(throttles.take(throttle, key), ({ details }) =>
    HttpEffect.appendPreResponseHandler((_, response) =>
      Effect.succeed(
        HttpServerResponse.setHeader(response, "retry-after", `${details.retryAfterSeconds}`)
      )
    )
  )
