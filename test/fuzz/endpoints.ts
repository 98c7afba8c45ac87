/** The endpoints to fuzz: parameters and bodies from the OpenAPI document, responses from the API definition. */
import { Result, Schema } from "effect"
import { HttpApi, HttpApiSchema, OpenApi } from "effect/http-api"
import { Api } from "#rpc/api"
import { configJsonSchema } from "#rpc/config-document/json-schema"
import {
  InvalidRequest,
  MethodNotAllowed,
  NotFound,
  PayloadTooLarge,
  UpgradeRequired,
  wire
} from "#rpc/errors/codes"
import { type Access, endpoints as matrix } from "#server/http/authorization"
import { JsonSchema } from "./schema-values.ts"

/** A path, query or header parameter. */
interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly shape: JsonSchema
}

/** Whether a response body decodes by the API definition. */
type Matches = (body: unknown) => boolean
type Responses = ReadonlyMap<number, Matches>

export interface Endpoint {
  readonly method: string
  /** The path as declared: `/v1/saves/:key`. */
  readonly path: string
  readonly access: Access
  readonly parameters: ReadonlyArray<Parameter>
  readonly body: JsonSchema | undefined
  /** The content type of the body. */
  readonly contentType: string
  readonly successes: Responses
  readonly errors: Responses
}

const Media = Schema.Record(Schema.String, Schema.Struct({ schema: JsonSchema }))
const Operation = Schema.Struct({
  parameters: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      in: Schema.Literals(["path", "query", "header"]),
      schema: JsonSchema
    })
  ),
  requestBody: Schema.optionalKey(Schema.Struct({ content: Media }))
})
const Paths = Schema.Record(Schema.String, Schema.Record(Schema.String, Operation))
const paths = Schema.decodeUnknownSync(Paths)(OpenApi.fromApi(Api).paths)

/** The schema of a config document; the OpenAPI document calls it any JSON. */
const configShape = Schema.decodeUnknownSync(JsonSchema)(configJsonSchema())

const matchesAny = (schemas: ReadonlyArray<Schema.Constraint>): Matches => {
  const decoders = schemas.map((schema) => {
    const body = HttpApiSchema.isWithHeaders(schema) ? schema.schema : schema
    return Schema.decodeUnknownResult(
      Schema.toCodecJson(Schema.make<Schema.Codec<unknown>>(body.ast))
    )
  })
  return (body) => decoders.some((decode) => Result.isSuccess(decode(body)))
}

const responsesOf = (
  schemas: ReadonlyMap<number, ReadonlyArray<Schema.Constraint>>
): Map<number, Matches> =>
  new Map(Array.from(schemas, ([status, those]) => [status, matchesAny(those)]))

/** Errors that any request may get, before or instead of reaching an endpoint. */
const commonErrors: Responses = new Map([
  [400, matchesAny([wire(InvalidRequest)])],
  [404, matchesAny([wire(NotFound)])],
  [405, matchesAny([wire(MethodNotAllowed)])],
  [408, (body) => hasCode(body, "invalid_request")],
  [413, matchesAny([wire(PayloadTooLarge)])],
  [415, (body) => hasCode(body, "unsupported_media_type")],
  [426, matchesAny([wire(UpgradeRequired)])],
  [431, (body) => hasCode(body, "payload_too_large")]
])

const BareError = Schema.Struct({
  error: Schema.Struct({ code: Schema.String, message: Schema.String })
})
const isBareError = Schema.is(BareError)

/** Whether a body is an error of the service with this code. */
const hasCode = (body: unknown, code: string): boolean =>
  isBareError(body) && body.error.code === code

/** Whether an endpoint, or the service in its place, documents this error. */
export const isDocumentedError = (
  endpoint: Endpoint | undefined,
  status: number,
  body: unknown
): boolean =>
  endpoint?.errors.get(status)?.(body) === true ||
  commonErrors.get(status)?.(body) === true ||
  (status === 400 && hasCode(body, "invalid_request"))

const readEndpoints = (): ReadonlyArray<Endpoint> => {
  const found: Array<Endpoint> = []
  HttpApi.reflect(Api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint: { method, path }, errors, successes }) => {
      const written = path.replace(/:([A-Za-z0-9]+)/g, "{$1}")
      const operation = paths[written]?.[method.toLowerCase()]
      const access = matrix.find((it) => it.method === method && it.path === path)?.access
      if (operation === undefined || access === undefined) throw new Error(`${method} ${path}`)
      const [media] = Object.entries(operation.requestBody?.content ?? {})
      const isConfig = method === "PUT" && path.endsWith("/config")
      found.push({
        method,
        path,
        access,
        parameters: operation.parameters.map((it) => ({ ...it, shape: it.schema })),
        body: isConfig ? configShape : media?.[1].schema,
        contentType: media?.[0] ?? "application/json",
        successes: responsesOf(successes),
        errors: responsesOf(errors)
      })
    }
  })
  return found
}

export const endpoints = readEndpoints()

const byName = new Map(
  endpoints.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint])
)

/** The endpoint of a route as it was declared. */
export const endpointOf = (method: string, route: string | undefined): Endpoint | undefined =>
  byName.get(`${method === "HEAD" ? "GET" : method} ${route}`)
