/**
 * Errors for requests that do not decode: 400 `invalid_json`, 400 `invalid_request` with every issue and
 * its path, 415 `unsupported_media_type`.
 */
import {
  ByteSize,
  Context,
  Effect,
  Function,
  Layer,
  Result,
  Schema,
  type SchemaIssue,
  type Types
} from "effect"
import { HttpIncomingMessage, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiError, type HttpApiEndpoint } from "effect/http-api"
import { BodyMaxBytes, KeepsBodyText, Requests } from "#rpc/auth"
import { InvalidJson, type InvalidRequest, UnsupportedMediaType } from "#rpc/errors/codes"
import { http } from "#rpc/limits"
import { invalidRequest } from "#server/platform/invalid-request"
import { ChecksNumbers } from "./request-bodies.ts"

/** Prefix of an issue's path for each part of the request. */
const slots = { Params: ["params"], Query: ["query"], Headers: ["headers"], Payload: [] } as const

/** Effect's message for a body that is not JSON. */
const notJson = "Expected a valid JSON body"

const isNotJson = (issue: SchemaIssue.Issue): boolean =>
  issue._tag === "InvalidValue" && issue.annotations?.message === notJson

const refusalOf = (
  error: HttpApiError.HttpApiSchemaError
): Effect.Effect<never, InvalidJson | InvalidRequest> => {
  // A response that does not match its schema is a defect of the service.
  if (error.kind === "Body" || error.kind === "ResponseHeaders") return Effect.die(error)
  if (isNotJson(error.cause.issue)) return Effect.fail(new InvalidJson())
  return Effect.fail(invalidRequest(error.cause.issue, slots[error.kind]))
}

const unreadable = (
  error: Types.unhandled
): Effect.Effect<never, InvalidJson | InvalidRequest | Types.unhandled> =>
  HttpApiError.HttpApiSchemaError.is(error) ? refusalOf(error) : Effect.fail(error)

const readable = (response: HttpServerResponse.HttpServerResponse) =>
  response.status === 415 ? Effect.fail(new UnsupportedMediaType()) : Effect.succeed(response)

/** Applies what the endpoint says of its body: its limit, unless it is the usual one, and its numbers. */
const withBodyRules = <A, E, R>(
  handler: Effect.Effect<A, E, R>,
  { annotations, method }: HttpApiEndpoint.Top
) => {
  const max = Context.get(annotations, BodyMaxBytes)
  const limited =
    max === http.bodyMaxBytes
      ? handler
      : Effect.provideService(handler, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(max))
  return method === "GET" || Context.get(annotations, KeepsBodyText)
    ? limited
    : Effect.provideService(limited, ChecksNumbers, true)
}

/**
 * Whether an empty body stands for an object without fields: the endpoint takes an object, and needs none
 * of its fields. A document, which may be any JSON, is never left out by mistake.
 */
const takesEmptyBody = Function.memoize(({ payload }: HttpApiEndpoint.Top): boolean => {
  const json = Array.from(payload.values()).find(({ encoding }) => encoding._tag === "Json")
  if (json === undefined) return false
  const decode = Schema.decodeUnknownResult(Schema.toEncoded(Schema.Union(json.schemas)))
  return Result.isSuccess(decode({})) && Result.isFailure(decode(0))
})

/** Reads an empty body as an object without fields. */
const emptyAsObject = Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
  const text = Effect.map(request.text, (read) => (read === "" ? "{}" : read))
  Object.defineProperty(request, "text", { value: text })
})

/** The innermost middleware of every endpoint. */
export const RequestsLive = Layer.succeed(
  Requests,
  Requests.of((handler, { endpoint }) => {
    const decoded = takesEmptyBody(endpoint) ? Effect.andThen(emptyAsObject, handler) : handler
    return Effect.flatMap(Effect.catch(withBodyRules(decoded, endpoint), unreadable), readable)
  })
)
