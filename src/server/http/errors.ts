/**
 * The one form of all errors (spec section 7): what goes wrong outside an endpoint's own errors (no
 * such path, a body that is too large, a fault, a lost database) becomes
 * `{ error: { code, message, details? } }` here. Of a fault, nothing but the request's id is told.
 */
import { IncomingMessage } from "node:http"
import { Cause, Effect, type Schema, SchemaAST } from "effect"
import { Socket } from "effect/socket"
import { HttpServerError, type HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  type CodedError,
  InternalError,
  InvalidRequest,
  MethodNotAllowed,
  NotFound,
  PayloadTooLarge,
  toWire,
  Unavailable,
  UpgradeRequired
} from "#rpc/errors/codes"
import { http as limits } from "#rpc/limits"
import { isUnreachable } from "#sql/database"
import { methodsOf, routeOf } from "./routes.ts"

const statusOf = SchemaAST.resolveAt<number>("httpApiStatus")

/** An error as an answer, with the status that stands on its class. */
export const errorResponse = <E extends CodedError>(
  self: Schema.Top & { readonly Type: E },
  error: E,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { error: toWire(error) },
    { status: statusOf(self.ast) ?? 500, headers }
  )

const noSuchRoute = (url: string): HttpServerResponse.HttpServerResponse => {
  const methods = methodsOf(url)
  return methods.length === 0
    ? errorResponse(NotFound, new NotFound())
    : errorResponse(MethodNotAllowed, new MethodNotAllowed(), { allow: methods.join(", ") })
}

/** What is wrong with the request itself; undefined when it is not the request's fault. */
const requestFault = (failure: unknown): HttpServerResponse.HttpServerResponse | undefined => {
  // Whoever asked for a WebSocket went away before it was open.
  if (Socket.isSocketError(failure) && failure.reason._tag === "SocketOpenError") {
    return upgradeRequired
  }
  if (!HttpServerError.isHttpServerError(failure)) return undefined
  const { reason, request } = failure
  if (reason._tag === "RouteNotFound") return noSuchRoute(request.url)
  if (reason._tag !== "RequestParseError") return undefined
  if (reason.reason === "BodyTooLarge") {
    const error = new PayloadTooLarge({ details: { limit: limits.bodyMaxBytes } })
    // What is left of the body is not read.
    return errorResponse(PayloadTooLarge, error, { connection: "close" })
  }
  // A plain request for a path whose handler upgrades.
  if (reason.cause === undefined) return upgradeRequired
  const issues = [{ path: "body", message: "The body could not be read." }]
  return errorResponse(InvalidRequest, new InvalidRequest({ details: { issues } }))
}

/** The answer of a WebSocket path to a plain request. */
export const upgradeRequired = errorResponse(UpgradeRequired, new UpgradeRequired(), {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13"
})

/**
 * The answer to what Node reads as a request and RFC 9112 does not (sections 3.2 and 6.1): without a
 * host, or with several; in a coding that is not undone. Others on its way may read it differently, so
 * the connection ends with it.
 */
export const rejectMalformed = ({
  headers,
  source
}: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse | undefined => {
  const { host, "transfer-encoding": coding = "chunked" } = headers
  const needsHost = source instanceof IncomingMessage && source.httpVersion === "1.1"
  const path =
    (host === undefined && needsHost) || host?.includes(",") === true
      ? "headers.host"
      : coding.toLowerCase() === "chunked"
        ? undefined
        : "headers.transfer-encoding"
  if (path === undefined) return undefined
  const issues = [{ path, message: "Expected exactly one" }]
  const error = new InvalidRequest({ details: { issues } })
  return errorResponse(InvalidRequest, error, { connection: "close" })
}

const isClientAbort = <E>({ reasons }: Cause.Cause<E>): boolean =>
  reasons.some(({ annotations }) => annotations.has(HttpServerError.ClientAbort.key))

/**
 * The answer to whatever a request failed with. A client that went away gets none: the interruption
 * goes on. A service that goes away says so. A fault is logged with its cause under the request's id.
 */
export const answerFailure = <E>(
  cause: Cause.Cause<E>,
  request: HttpServerRequest.HttpServerRequest,
  requestId: string
): Effect.Effect<HttpServerResponse.HttpServerResponse, E> => {
  if (Cause.hasInterruptsOnly(cause)) {
    if (isClientAbort(cause)) return Effect.failCause(cause)
    return Effect.succeed(errorResponse(Unavailable, new Unavailable(), { connection: "close" }))
  }
  const failure = Cause.squash(cause)
  const refusal = requestFault(failure)
  if (refusal !== undefined) return Effect.succeed(refusal)
  const unreachable = isUnreachable(failure)
  const answer = unreachable
    ? errorResponse(Unavailable, new Unavailable())
    : errorResponse(InternalError, new InternalError({ details: { requestId } }))
  const log = unreachable
    ? Effect.logWarning("The database is unreachable", String(failure))
    : Effect.logError("A request failed", cause)
  return log.pipe(
    Effect.annotateLogs({ method: request.method, route: routeOf(request.method, request.url) }),
    Effect.as(answer)
  )
}
