/** Throttles as HTTP shows them: 429 `rate_limited` with `Retry-After` (decisions 3.1.6, 3.1.14). */
import { Cause, Effect, Exit, Option } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { RateLimited, Unavailable } from "#rpc/errors/codes"
import type { Throttle } from "#rpc/limits"
import type { Throttles } from "./throttles.ts"

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

/** Has whoever tried not failed: did it go well, or was it the service that failed? */
const isForgiven = <A, E>(exit: Exit.Exit<A, E>): boolean => {
  if (Exit.isSuccess(exit)) return true
  const error = Cause.findErrorOption(exit.cause)
  return Option.isSome(error) ? error.value instanceof Unavailable : Cause.hasDies(exit.cause)
}

/** A try counts against these buckets only when it fails, and not by a fault of the service. */
export const guarded =
  (throttles: Throttles["Service"], buckets: ReadonlyArray<readonly [Throttle, string]>) =>
  <A, E, R>(attempt: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      for (const [throttle, key] of buckets) yield* throttled(throttles, throttle, key)
      const exit = yield* Effect.exit(attempt)
      if (isForgiven(exit)) for (const [, key] of buckets) yield* throttles.giveBack(key)
      return yield* exit
    })
