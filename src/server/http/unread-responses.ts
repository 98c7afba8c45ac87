/**
 * Bounds the responses that clients have not read yet: a budget that all of them share, and a deadline for
 * each, by its size. A client beyond either loses its connection. A response that the operating system
 * takes at once counts for a moment only.
 */
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Clock, Effect, Schedule, Stream } from "effect"
import { HttpBody, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { http as limits } from "#rpc/limits"
import { clientAddress } from "#server/platform/client-address"
import { readings } from "#server/platform/metrics"
import { monotonicMillis } from "#server/platform/monotonic"
import { Settings } from "#server/platform/settings/settings"
import { ByteBudget, type Holding } from "./byte-budget.ts"
import { HttpBounds } from "./server.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

const sweepMillis = 1000
const second = 1000

/** Smaller responses do not count: a connection has one unsent response at most. */
const smallBytes = 4096
/** Text of at least this size is encoded once: Node would hold it, and a copy of its bytes. */
const encodedBytes = 64 * 1024

/** Returns a function that binds a response to the bounds, before it is sent. */
export const makeBoundResponse = Effect.gen(function* () {
  const { saves, trustedProxies } = yield* Settings
  const { responseTimeout } = yield* HttpBounds
  const now = monotonicMillis(yield* Clock.Clock)
  const { gauge } = yield* readings
  const budget = new ByteBudget(Math.max(limits.unreadMaxBytes, 2 * saves.maxBytes))
  gauge(
    "svc_http_unread_bytes",
    "Bytes of responses that clients have not read yet.",
    () => budget.bytes
  )
  yield* Effect.sync(() => budget.sweep(now())).pipe(
    Effect.repeat(Schedule.spaced(sweepMillis)),
    Effect.forkScoped
  )

  /** Counts bytes until they are released, or the response has been sent. */
  const makeHold = (request: Request) => {
    const response = NodeHttpServerRequest.toServerResponse(request)
    const owner = clientAddress(request, trustedProxies)
    let holding: Holding | undefined
    response.once("close", () => holding?.release())
    return (bytes: number): void => {
      holding?.release()
      const millis = responseTimeout + (bytes / limits.slowestBytesPerSecond) * second
      holding = budget.open(owner, now() + millis, () => response.destroy())
      holding.add(bytes)
    }
  }

  /** Each part of a stream counts until the next one is asked for. */
  const boundStream = (request: Request, response: Response, body: HttpBody.Stream): Response => {
    const hold = makeHold(request)
    const stream = Stream.tap(body.stream, ({ length }) => Effect.sync(() => hold(length)))
    return HttpServerResponse.setBody(
      response,
      HttpBody.stream(stream, body.contentType, body.contentLength)
    )
  }

  return (request: Request, response: Response): Response => {
    const { body } = response
    if (body._tag === "Stream") return boundStream(request, response, body)
    // Bytes without a text were encoded in advance, and all responses share them.
    if (body._tag !== "Uint8Array" || body.text === undefined) return response
    if (body.contentLength < smallBytes) return response
    makeHold(request)(body.contentLength)
    return body.contentLength < encodedBytes
      ? response
      : HttpServerResponse.setBody(response, HttpBody.uint8Array(body.body, body.contentType))
  }
})
