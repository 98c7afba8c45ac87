/** Throttles as HTTP shows them: 429 `rate_limited` with `Retry-After` (decisions 3.1.6, 3.1.14). */
import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { RateLimited } from "#rpc/errors"
import type { Throttle } from "#rpc/limits"
import type { Throttles } from "../throttles.ts"

/** A refusal tells the client when to come again. */
export const tellWhenToRetry = <A, E, R>(taken: Effect.Effect<A, E, R>) =>
  Effect.tapError(taken, (error) => {
    if (!(error instanceof RateLimited)) return Effect.void
    const seconds = `${error.details.retryAfterSeconds}`
    return HttpEffect.appendPreResponseHandler((_, response) =>
      Effect.succeed(HttpServerResponse.setHeader(response, "retry-after", seconds))
    )
  })

/** Takes a token from a bucket. */
export const throttled = (throttles: Throttles["Service"], throttle: Throttle, key: string) =>
  tellWhenToRetry(throttles.take(throttle, key))

/** A try counts against these buckets only when it fails. */
export const guarded =
  (throttles: Throttles["Service"], buckets: ReadonlyArray<readonly [Throttle, string]>) =>
  <A, E, R>(attempt: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      for (const [throttle, key] of buckets) yield* throttled(throttles, throttle, key)
      const done = yield* attempt
      for (const [, key] of buckets) yield* throttles.giveBack(key)
      return done
    })
