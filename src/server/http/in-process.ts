/**
 * Opens the API for calls in the process: the same handlers on a router of their own. A call reaches only
 * endpoints that are open to its door.
 */
import { ByteSize, Effect, Layer, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import {
  FindMyWay,
  HttpIncomingMessage,
  HttpRouter,
  type HttpServerError,
  HttpServerRequest
} from "effect/http"
import { HttpApi, HttpApiBuilder, type HttpApiEndpoint } from "effect/http-api"
import { Api } from "#rpc/api"
import { NotFound } from "#rpc/errors/codes"
import { InProcessApi } from "#rpc/in-process"
import { http } from "#rpc/limits"
import { isOpenTo } from "#rpc/operations"
import { InProcess, KnownCaller } from "#server/platform/in-process"
import { respondToFailure, errorResponse } from "./errors.ts"
import { BodyTooLarge, checkBody, ChecksNumbers, unreadable } from "./request-bodies.ts"
import { routerConfig } from "./routes.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Bounds the body of a request from memory by the rules of bodies from a socket. */
const boundBody = (request: Request): void => {
  const received = request.arrayBuffer
  const text = Effect.withFiber<string, HttpServerError.HttpServerError>((fiber) => {
    const max = fiber.getRef(HttpIncomingMessage.MaxBodySize)
    const limit = max === undefined ? http.bodyMaxBytes : ByteSize.toNumberUnsafe(max)
    const checksNumbers = fiber.getRef(ChecksNumbers)
    return Effect.flatMap(received, (body) => {
      const refusal =
        body.byteLength > limit
          ? new BodyTooLarge({ limit })
          : checkBody(request, body, checksNumbers)
      return refusal === undefined
        ? Effect.succeed(Buffer.from(body).toString())
        : Effect.fail(unreadable(request, refusal))
    })
  })
  // The middleware of requests may replace it once more.
  Object.defineProperty(request, "text", { value: text, configurable: true })
}

const isMethod = Schema.is(Schema.Literals(["DELETE", "GET", "PATCH", "POST", "PUT"]))

/** All endpoints by route, also those that no door opens: a closed one must not look like another. */
const endpoints = FindMyWay.make<HttpApiEndpoint.Top>(routerConfig)

const declare = {
  onGroup: () => undefined,
  onEndpoint: ({ endpoint }: { readonly endpoint: HttpApiEndpoint.Top }) => {
    if (isMethod(endpoint.method))
      endpoints.on(endpoint.method, `/${endpoint.path.slice(1)}`, endpoint)
  }
}
HttpApi.reflect(Api, declare)
HttpApi.reflect(InProcessApi, declare)

/** Whether the known caller may call the endpoint of the request. */
const isOpen = ({ method, url }: Request, caller: KnownCaller | undefined): boolean => {
  if (caller === undefined || !isMethod(method)) return false
  const found = endpoints.find(method, url)?.handler
  return found !== undefined && isOpenTo(caller.door, found)
}

/** Opens {@link InProcess} with the handlers of all groups. */
export const InProcessLive = Layer.effectDiscard(
  Effect.gen(function* () {
    const inProcess = yield* InProcess
    const random = yield* SecureRandom.SecureRandom
    const prefix = yield* random.uuidV7()
    const router = yield* Effect.provideService(
      HttpRouter.make,
      HttpRouter.RouterConfig,
      routerConfig
    )
    yield* Layer.build(
      Layer.merge(HttpApiBuilder.layer(Api), HttpApiBuilder.layer(InProcessApi)).pipe(
        Layer.provide(Layer.succeed(HttpRouter.HttpRouter, router))
      )
    )
    const serve = router.asHttpEffect()
    let calls = 0
    yield* inProcess.open(
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        if (!isOpen(request, yield* KnownCaller)) return errorResponse(NotFound, new NotFound())
        calls += 1
        const requestId = `${prefix}-call-${calls}`
        boundBody(request)
        return yield* serve.pipe(
          Effect.catchCause((cause) => Effect.orDie(respondToFailure(cause, request, requestId))),
          Effect.annotateLogs({ requestId })
        )
      })
    )
  })
)
