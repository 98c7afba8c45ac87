/**
 * Bounds the responses that clients have not read yet: a budget that all of them share, and a deadline for
 * each, by its size. A client beyond either loses its connection. A response that the operating system
 * takes at once counts for a moment only.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect, Stream } from "effect"
import { HttpBody, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { MiB } from "#rpc/units"
import { cutConnection } from "#server/platform/cut-connection"
import type { Holding } from "./byte-budget.ts"
import { makeClientBudget } from "./client-budget.ts"
import { HttpBounds } from "./server.ts"

/** Responses of one process that clients have not read yet. */
const unreadMaxBytes = 48 * MiB

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** Size below which responses do not count: a connection has one unsent response at most. */
const smallBytes = 4096

/**
 * Returns a function that binds a response to the bounds. Apply it to the response of a request's
 * effect: the fiber holds that until the client has read all of it. So bytes replace text, which
 * Node would copy to them anyway.
 */
export const makeBoundResponse = Effect.gen(function* () {
  const { responseTimeout } = yield* HttpBounds
  const open = yield* makeClientBudget({
    metric: "svc_http_unread_bytes",
    description: "Bytes of responses that clients have not read yet.",
    maxBytes: unreadMaxBytes,
    timeout: responseTimeout
  })

  /** Counts bytes until they are released, or the response has been sent. */
  const makeHold = (request: Request) => {
    const response = NodeHttpServerRequest.toServerResponse(request)
    let holding: Holding | undefined
    response.once("close", () => holding?.release())
    return (bytes: number): void => {
      holding?.release()
      holding = open(request, bytes, () => {
        if (response.socket === null) response.destroy()
        else cutConnection(response.socket)
      })
      holding.add(bytes)
    }
  }

  /** Counts each part of a stream until the client's connection asks for the next one. */
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
    return HttpServerResponse.setBody(response, HttpBody.uint8Array(body.body, body.contentType))
  }
})
