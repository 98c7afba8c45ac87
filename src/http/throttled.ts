/** Throttles as HTTP shows them: 429 `rate_limited` with `Retry-After` (decisions 3.1.6, 3.1.14). */
import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import type { RateLimited } from "#rpc/errors"
import type { Throttle } from "#rpc/limits"
import type { Throttles } from "../throttles.ts"

/** A refusal tells the client when to come again. */
export const tellWhenToRetry = <A, R>(taken: Effect.Effect<A, RateLimited, R>) =>
  Effect.tapError(taken, ({ details }) =>
    HttpEffect.appendPreResponseHandler((_, response) =>
      Effect.succeed(
        HttpServerResponse.setHeader(response, "retry-after", `${details.retryAfterSeconds}`)
      )
    )
  )

/** Takes a token from a bucket. */
export const throttled = (throttles: Throttles["Service"], throttle: Throttle, key: string) =>
  tellWhenToRetry(throttles.take(throttle, key))
