/**
 * What every request passes first and every answer last: its id, CORS (decisions 3.1.12), the one
 * form of errors, and what is noted of it. One layer, since the order of global middleware is not the order of layers.
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
import { http as limits } from "#rpc/limits"
import { makeAccessLog } from "./access-log.ts"
import { answerFailure, rejectMalformed } from "./errors.ts"

type Response = HttpServerResponse.HttpServerResponse

const requestIdHeader = "x-request-id"

/** Ids that a proxy or client gave a request, as far as a log can hold them. */
const requestIdForm = /^[A-Za-z0-9._:-]{1,64}$/

const cors = HttpMiddleware.cors({
  allowedHeaders: ["authorization", "content-type", "x-svc-key", "idempotency-key", "if-match"],
  allowedMethods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
  exposedHeaders: ["x-request-id", "retry-after", "etag"],
  maxAge: limits.corsMaxAgeSeconds
})

/** The middleware around the whole router. */
export const EdgeMiddleware = HttpRouter.middleware(
  Effect.gen(function* () {
    const random = yield* SecureRandom.SecureRandom
    // Unlike everywhere by its first part, and cheap: a counter tells the requests of a process.
    const process = yield* random.uuidV7()
    const { note } = yield* makeAccessLog
    let requests = 0
    const idOf = ({ headers }: HttpServerRequest.HttpServerRequest): string => {
      const given = headers[requestIdHeader] ?? ""
      if (requestIdForm.test(given)) return given
      requests += 1
      return `${process}-${requests}`
    }
    return <E>(router: Effect.Effect<Response, E>) =>
      Effect.withFiber<Response, E, HttpServerRequest.HttpServerRequest>((fiber) => {
        const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
        const requestId = idOf(request)
        const begun = fiber.getRef(Clock.Clock).currentTimeNanosUnsafe()
        HttpEffect.appendPreResponseHandlerUnsafe(fiber.context, (_, response) =>
          Effect.as(
            note(request, response.status, { begun, requestId }),
            HttpServerResponse.setHeaders(response, {
              // Answers hold tokens and what changes at any time; pages may say otherwise.
              "cache-control": response.headers["cache-control"] ?? "no-store",
              "x-content-type-options": "nosniff",
              [requestIdHeader]: requestId
            })
          )
        )
        const refusal = rejectMalformed(request)
        if (refusal !== undefined) return Effect.succeed(refusal)
        return Effect.annotateLogs(
          Effect.catchCause(cors(router), (cause) => answerFailure(cause, request, requestId)),
          { requestId }
        )
      })
  }),
  { global: true }
)
