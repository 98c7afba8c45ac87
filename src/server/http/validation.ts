/**
 * What every endpoint says of a request that it cannot read: 400 `invalid_json`, 400
 * `invalid_request` with every issue and its path, 415 `unsupported_media_type`.
 */
import { Effect, Layer, type SchemaIssue, type Types } from "effect"
import type { HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { Requests } from "#rpc/auth"
import { InvalidJson, type InvalidRequest, UnsupportedMediaType } from "#rpc/errors/codes"
import { invalidRequest } from "#server/platform/invalid-request"

/** Where a part of the request is, as an issue's path begins. */
const slots = { Params: ["params"], Query: ["query"], Headers: ["headers"], Payload: [] } as const

/** What the library says of a body that is not JSON. */
const notJson = "Expected a valid JSON body"

const isNotJson = (issue: SchemaIssue.Issue): boolean =>
  issue._tag === "InvalidValue" && issue.annotations?.message === notJson

const refusalOf = (
  error: HttpApiError.HttpApiSchemaError
): Effect.Effect<never, InvalidJson | InvalidRequest> => {
  // An answer of ours that breaks its own schema is a fault, not the request's.
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

/** The middleware that stands next to the handler of every endpoint. */
export const RequestsLive = Layer.succeed(
  Requests,
  Requests.of((answer) => Effect.flatMap(Effect.catch(answer, unreadable), readable))
)
