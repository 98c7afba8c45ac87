/**
 * Error format of every response: `{ error: { code, message, details? } }`. It covers the errors
 * that no endpoint declares: unknown paths, oversized bodies, defects, a lost database. The
 * response to a defect reveals only the request id.
 */
import { IncomingMessage } from "node:http"
import { Cause, Effect, type Schema, SchemaAST } from "effect"
import { Socket } from "effect/socket"
import { HttpServerError, type HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  type CodedError,
  InternalError,
  InvalidJson,
  InvalidRequest,
  MethodNotAllowed,
  NotFound,
  PayloadTooLarge,
  toWire,
  Unavailable,
  UnsupportedMediaType,
  UpgradeRequired
} from "#rpc/errors/codes"
import { statusOf } from "#rpc/errors/wire"
import { numberRule } from "#rpc/json"
import { isUnreachable, logFailure } from "#sql/database"
import { CredentialRefused } from "#server/platform/credential-check"
import { invalidField } from "#server/platform/invalid-request"
import { BodyCut, BodyNotText, BodyNumberChanges, BodyTooLarge } from "./request-bodies.ts"
import { methodsOf, routeOf } from "./routes.ts"

const declaredStatus = SchemaAST.resolveAt<number>("httpApiStatus")

/** The response for an error, with the status that its class declares. */
export const errorResponse = <E extends CodedError>(
  self: Schema.Top & { readonly Type: E },
  error: E,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { error: toWire(error) },
    { status: declaredStatus(self.ast) ?? 500, headers }
  )

const noSuchRoute = (url: string): HttpServerResponse.HttpServerResponse => {
  const methods = methodsOf(url)
  return methods.length === 0
    ? errorResponse(NotFound, new NotFound())
    : errorResponse(MethodNotAllowed, new MethodNotAllowed(), { allow: methods.join(", ") })
}

const bodyCut = ({ reason }: BodyCut): HttpServerResponse.HttpServerResponse => {
  const headers = { connection: "close", "retry-after": "1" }
  if (reason === "exhausted") return errorResponse(Unavailable, new Unavailable(), headers)
  const error = invalidField("body", "The body took too long.")
  return HttpServerResponse.setStatus(errorResponse(InvalidRequest, error, headers), 408)
}

/** The response for a faulty request; undefined if the request is not at fault. */
const requestFault = (failure: unknown): HttpServerResponse.HttpServerResponse | undefined => {
  // The client went away before its WebSocket was open.
  if (Socket.isSocketError(failure) && failure.reason._tag === "SocketOpenError") {
    return upgradeRequired
  }
  if (!HttpServerError.isHttpServerError(failure)) return undefined
  const { reason, request } = failure
  if (reason._tag === "RouteNotFound") return noSuchRoute(request.url)
  if (reason._tag !== "RequestParseError") return undefined
  if (reason.cause instanceof BodyTooLarge) {
    const error = new PayloadTooLarge({ details: { limit: reason.cause.limit } })
    // The rest of the body is not read, so the connection cannot be reused.
    return errorResponse(PayloadTooLarge, error, { connection: "close" })
  }
  if (reason.cause instanceof BodyCut) return bodyCut(reason.cause)
  if (reason.cause instanceof BodyNotText) return errorResponse(InvalidJson, new InvalidJson())
  if (reason.cause instanceof BodyNumberChanges) {
    return errorResponse(InvalidRequest, invalidField(reason.cause.path || "body", numberRule))
  }
  // A plain request to a WebSocket path.
  if (reason.cause === undefined) return upgradeRequired
  return errorResponse(InvalidRequest, invalidField("body", "The body could not be read."))
}

/** The response to a request whose credentials have ended: that to a new one. */
const refusalOfNewRequest = ({ error }: CredentialRefused): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe({ error: toWire(error) }, { status: statusOf(error) })

/** The response of a WebSocket path to a plain request. */
export const upgradeRequired = errorResponse(UpgradeRequired, new UpgradeRequired(), {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13"
})

/**
 * Rejects an encoded body: decoded, a small one may be of any size. The server does not read the
 * rest of it.
 */
export const rejectEncoded = ({
  headers: { "content-encoding": coding = "identity" }
}: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse | undefined => {
  if (coding.trim().toLowerCase() === "identity") return undefined
  const message = "Send the body without Content-Encoding."
  return errorResponse(UnsupportedMediaType, new UnsupportedMediaType({ message }), {
    "accept-encoding": "identity",
    connection: "close"
  })
}

/**
 * Rejects requests that Node accepts and RFC 9112 (3.2, 6.1) does not: no host or several, or an
 * unsupported transfer coding. A proxy may parse them differently (request smuggling), so the connection
 * closes.
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
  const error = invalidField(path, "Expected exactly one")
  return errorResponse(InvalidRequest, error, { connection: "close" })
}

const isClientAbort = <E>({ reasons }: Cause.Cause<E>): boolean =>
  reasons.some(({ annotations }) => annotations.has(HttpServerError.ClientAbort.key))

/**
 * Returns the response to a failed request. A disconnected client gets none: the interruption
 * propagates. When the service stops, the response is 503. It logs a defect with its cause and the
 * request id.
 */
export const respondToFailure = <E>(
  cause: Cause.Cause<E>,
  request: HttpServerRequest.HttpServerRequest,
  requestId: string
): Effect.Effect<HttpServerResponse.HttpServerResponse, E> => {
  if (Cause.hasInterruptsOnly(cause)) {
    if (isClientAbort(cause)) return Effect.failCause(cause)
    return Effect.succeed(errorResponse(Unavailable, new Unavailable(), { connection: "close" }))
  }
  const failure = Cause.squash(cause)
  const refusal =
    failure instanceof CredentialRefused ? refusalOfNewRequest(failure) : requestFault(failure)
  if (refusal !== undefined) return Effect.succeed(refusal)
  const reported = isUnreachable(failure)
    ? errorResponse(Unavailable, new Unavailable())
    : errorResponse(InternalError, new InternalError({ details: { requestId } }))
  return logFailure("Failed to handle a request", failure, cause).pipe(
    Effect.annotateLogs({ method: request.method, route: routeOf(request.method, request.url) }),
    Effect.as(reported)
  )
}
