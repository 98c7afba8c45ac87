/**
 * Request body of `PUT /v1/saves/:key`. The service reads it as text, because it stores `data` as the
 * client's exact JSON text. Reading stops as soon as the body exceeds the size limit.
 */
import { ByteSize, Effect, Result, Schema } from "effect"
import {
  HttpEffect,
  HttpIncomingMessage,
  HttpServerError,
  type HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { InvalidJson, InvalidRequest, SaveTooLarge, UnsupportedMediaType } from "#rpc/errors/codes"
import { SavePut } from "#rpc/saves"
import { KiB } from "#rpc/units"
import { invalidField, invalidRequest } from "#server/platform/invalid-request"
import { memberText } from "./json-text.ts"

const dataDepthMax = 64

/** Bytes of a body beside the data: the other fields and white space. */
const bodySlackBytes = 64 * KiB

/** Decoded write; `data` is JSON text, `size` its length in UTF-8 bytes. */
export interface SaveBody {
  readonly data: string
  readonly size: number
  readonly ifVersion: number | undefined
}

type BodyError = InvalidJson | InvalidRequest | SaveTooLarge | UnsupportedMediaType

/** Decodes all fields except `data`. A separate step checks `data` as text. */
const decodeFields = Schema.decodeUnknownResult(
  Schema.Struct({ data: Schema.Unknown, ifVersion: SavePut.fields.ifVersion }),
  { errors: "all" }
)

const jsonMediaType = /^application\/json\s*(?:;|$)/i

const parseJson = (text: string): Result.Result<unknown, InvalidJson> =>
  Result.try({ try: () => JSON.parse(text), catch: () => new InvalidJson() })

const tooDeep = invalidField("data", `Expected at most ${dataDepthMax} levels of nesting`)

/** Parses and checks a request body. */
export const parseSaveBody = (
  text: string,
  maxBytes: number
): Result.Result<SaveBody, BodyError> => {
  const parsed = parseJson(text)
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
  const fields = decodeFields(parsed.success)
  if (Result.isFailure(fields)) return Result.fail(invalidRequest(fields.failure.issue))
  const data = memberText(text, "data")
  if (data === undefined) return Result.fail(new InvalidJson())
  if (data.depth > dataDepthMax) return Result.fail(tooDeep)
  const size = Buffer.byteLength(data.text)
  if (size > maxBytes) {
    return Result.fail(new SaveTooLarge({ details: { size, limit: maxBytes } }))
  }
  return Result.succeed({ data: data.text, size, ifVersion: fields.success.ifVersion })
}

/**
 * Closes the connection after the response, so that the service need not read the rest of a too large
 * body.
 */
const closeConnection = HttpEffect.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "connection", "close"))
)

/** Reads and parses the body of a request; fails with `save_too_large` above `maxBytes`. */
export const makeReadSaveBody = (maxBytes: number) => {
  const textMaxBytes = ByteSize.fromInputUnsafe(maxBytes + bodySlackBytes)
  const tooLarge = ({ headers }: HttpServerRequest.HttpServerRequest) => {
    const size = Math.max(Number(headers["content-length"]) || 0, maxBytes + 1)
    const error = new SaveTooLarge({ details: { size, limit: maxBytes } })
    return Effect.andThen(closeConnection, Effect.fail(error))
  }
  return Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    if (!jsonMediaType.test(request.headers["content-type"] ?? "application/json")) {
      return yield* new UnsupportedMediaType()
    }
    const text = yield* request.text.pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, textMaxBytes),
      Effect.catch((error) => (isTooLarge(error) ? tooLarge(request) : Effect.die(error)))
    )
    return yield* Effect.fromResult(parseSaveBody(text, maxBytes))
  })
}

const isTooLarge = ({ reason }: HttpServerError.HttpServerError): boolean =>
  reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
