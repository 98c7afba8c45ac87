/**
 * What every request passes first and every answer last: its id, CORS (decisions 3.1.12), the bound
 * on bodies, and the one form of errors. One layer, since the order of global middleware is not the
 * order of layers.
 */
import { ByteSize, Context, Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import {
  HttpEffect,
  HttpIncomingMessage,
  HttpMiddleware,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { http as limits } from "#rpc/limits"
import { answerFailure } from "./errors.ts"

type Response = HttpServerResponse.HttpServerResponse

const bodyMax = ByteSize.fromInputUnsafe(limits.bodyMaxBytes)

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
export const Edge = HttpRouter.middleware(
  Effect.gen(function* () {
    const random = yield* SecureRandom.SecureRandom
    const idOf = ({ headers }: HttpServerRequest.HttpServerRequest) => {
      const given = headers[requestIdHeader] ?? ""
      return requestIdForm.test(given) ? Effect.succeed(given) : random.uuidV4()
    }
    return <E>(router: Effect.Effect<Response, E>) =>
      Effect.withFiber<Response, E, HttpServerRequest.HttpServerRequest>((fiber) => {
        const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
        return Effect.flatMap(idOf(request), (requestId) => {
          HttpEffect.appendPreResponseHandlerUnsafe(fiber.context, (_, response) =>
            Effect.succeed(
              HttpServerResponse.setHeaders(response, {
                // Answers hold tokens and what changes at any time; pages may say otherwise.
                "cache-control": response.headers["cache-control"] ?? "no-store",
                "x-content-type-options": "nosniff",
                [requestIdHeader]: requestId
              })
            )
          )
          return Effect.catchCause(cors(router), (cause) =>
            answerFailure(cause, request, requestId)
          )
        })
      }).pipe(Effect.provideService(HttpIncomingMessage.MaxBodySize, bodyMax))
  }),
  { global: true }
)
