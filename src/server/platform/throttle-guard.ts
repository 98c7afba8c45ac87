/** HTTP side of the throttles: a refusal becomes 429 `rate_limited` with a `Retry-After` header. */
import { Cause, Effect, Exit, Option } from "effect"
import { HttpEffect, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { type RateWindow, type Throttle } from "#rpc/auth"
import { RateLimited, Unavailable } from "#rpc/errors/codes"
import { clientAddress } from "./client-address.ts"
import { Settings } from "./settings/settings.ts"
import { Throttles } from "./throttles.ts"

/** Adds `Retry-After` to the response when the effect fails with `RateLimited`. */
export const withRetryAfter = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.tapError(effect, (error) => {
    if (!(error instanceof RateLimited)) return Effect.void
    const seconds = `${error.details.retryAfterSeconds}`
    return HttpEffect.appendPreResponseHandler((_, response) =>
      Effect.succeed(HttpServerResponse.setHeader(response, "retry-after", seconds))
    )
  })

/** Takes one token from the bucket of `key`, or a place in its window. Fails if there is none. */
export const takeToken = (
  throttles: Throttles["Service"],
  limit: Throttle | RateWindow,
  key: string
) => withRetryAfter(throttles.take(limit, key))

/** Takes a token of the client's address for one action. */
export const makeThrottleAddress = Effect.gen(function* () {
  const throttles = yield* Throttles
  const { trustedProxies } = yield* Settings
  return (throttle: Throttle, action: string, request: HttpServerRequest.HttpServerRequest) =>
    takeToken(throttles, throttle, `${action}:${clientAddress(request, trustedProxies)}`)
})

/** Whether the tokens of an attempt go back: it succeeded, or it failed by a fault of the service. */
const isRefundable = <A, E>(exit: Exit.Exit<A, E>): boolean => {
  if (Exit.isSuccess(exit)) return true
  const error = Cause.findErrorOption(exit.cause)
  return Option.isSome(error) ? error.value instanceof Unavailable : Cause.hasDies(exit.cause)
}

/**
 * Limits failed attempts. It takes a token from every bucket before the attempt, and refunds them
 * unless the caller failed. Wrong passwords count, successes and faults of the service do not.
 */
export const countFailures =
  (throttles: Throttles["Service"], buckets: ReadonlyArray<readonly [Throttle, string]>) =>
  <A, E, R>(attempt: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      for (const [throttle, key] of buckets) yield* takeToken(throttles, throttle, key)
      const exit = yield* Effect.exit(attempt)
      if (isRefundable(exit)) for (const [, key] of buckets) yield* throttles.refund(key)
      return yield* exit
    })
