/**
 * Global HTTP middleware: request ids, CORS, the error format and the access log. It is one middleware,
 * since the order of several global ones does not follow the order of their layers.
 */
import { Clock, Context, Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import {
  HttpEffect,
  HttpMiddleware,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { http } from "#rpc/limits"
import { RequestCounts } from "#server/platform/request-counts"
import { givenRequestId } from "#server/platform/request-errors"
import { makeAccessLog } from "./access-log.ts"
import { CompactMessage } from "./compact-message.ts"
import { respondToFailure, rejectEncoded, rejectMalformed } from "./errors.ts"
import { withMissingPage } from "./missing-page.ts"
import { makeBoundBody } from "./request-bodies.ts"
import { makeBoundResponse } from "./unread-responses.ts"

type Response = HttpServerResponse.HttpServerResponse

const requestIdHeader = "x-request-id"

const cors = HttpMiddleware.cors({
  allowedHeaders: [
    "authorization",
    "content-type",
    "x-svc-key",
    "idempotency-key",
    "if-match",
    // Tracing libraries of pages add these to each request.
    "traceparent",
    "tracestate",
    "baggage",
    "sentry-trace"
  ],
  allowedMethods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
  exposedHeaders: ["x-request-id", "retry-after", "etag"],
  maxAge: http.corsMaxAgeSeconds
})

/** Wraps the whole router. */
export const EdgeMiddleware = HttpRouter.middleware(
  Effect.gen(function* () {
    const random = yield* SecureRandom.SecureRandom
    // A random prefix for the process and a counter: unique and cheap.
    const process = yield* random.uuidV7()
    const { record } = yield* makeAccessLog
    const counts = yield* RequestCounts
    const boundBody = yield* makeBoundBody
    const boundResponse = yield* makeBoundResponse
    let requests = 0
    const idOf = (request: HttpServerRequest.HttpServerRequest): string => {
      const given = givenRequestId(request)
      if (given !== undefined) return given
      requests += 1
      return `${process}-${requests}`
    }
    return <E>(router: Effect.Effect<Response, E>) =>
      Effect.withFiber<Response, E, HttpServerRequest.HttpServerRequest>((fiber) => {
        const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
        const requestId = idOf(request)
        const startedAt = fiber.getRef(Clock.Clock).currentTimeNanosUnsafe()
        HttpEffect.appendPreResponseHandlerUnsafe(fiber.context, (_, response) => {
          const { source } = request
          if (source instanceof CompactMessage && source.environmentId !== undefined) {
            counts.add(source.environmentId, response.status)
          }
          return Effect.map(record(request, response.status, { startedAt, requestId }), () =>
            HttpServerResponse.setHeaders(response, {
              // Responses contain tokens and volatile data; a route may set its own policy.
              "cache-control": response.headers["cache-control"] ?? "no-store",
              "x-content-type-options": "nosniff",
              [requestIdHeader]: requestId
            })
          )
        })
        const refusal = rejectMalformed(request) ?? rejectEncoded(request)
        if (refusal !== undefined) return Effect.succeed(refusal)
        boundBody(request)
        return Effect.annotateLogs(
          Effect.map(
            Effect.catchCause(cors(router), (cause) => respondToFailure(cause, request, requestId)),
            (response) => boundResponse(request, withMissingPage(request, response))
          ),
          { requestId }
        )
      })
  }),
  { global: true }
)
