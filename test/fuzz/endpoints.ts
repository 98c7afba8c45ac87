/**
 * The endpoints to fuzz: how each is asked, from the OpenAPI document, and how it may answer, from
 * the definitions.
 */
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
import { Shape } from "./shapes.ts"

/** What an endpoint takes beside its body. */
interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly shape: Shape
}

/** Whether a body is one of those that the definitions know. */
type Known = (body: unknown) => boolean
type Answers = ReadonlyMap<number, Known>

export interface Endpoint {
  readonly method: string
  /** As it was declared: `/v1/saves/:key`. */
  readonly path: string
  readonly access: Access
  readonly parameters: ReadonlyArray<Parameter>
  readonly body: Shape | undefined
  /** Of a body. */
  readonly contentType: string
  readonly successes: Answers
  readonly errors: Answers
}

const Media = Schema.Record(Schema.String, Schema.Struct({ schema: Shape }))
const Operation = Schema.Struct({
  parameters: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      in: Schema.Literals(["path", "query", "header"]),
      schema: Shape
    })
  ),
  requestBody: Schema.optionalKey(Schema.Struct({ content: Media }))
})
const Paths = Schema.Record(Schema.String, Schema.Record(Schema.String, Operation))
const paths = Schema.decodeUnknownSync(Paths)(OpenApi.fromApi(Api).paths)

/** The document that the OpenAPI one calls any JSON. */
const configShape = Schema.decodeUnknownSync(Shape)(configJsonSchema())

const knownBy = (schemas: ReadonlyArray<Schema.Constraint>): Known => {
  const decoders = schemas.map((schema) => {
    const body = HttpApiSchema.isWithHeaders(schema) ? schema.schema : schema
    return Schema.decodeUnknownResult(
      Schema.toCodecJson(Schema.make<Schema.Codec<unknown>>(body.ast))
    )
  })
  return (body) => decoders.some((decode) => Result.isSuccess(decode(body)))
}

const answersOf = (
  schemas: ReadonlyMap<number, ReadonlyArray<Schema.Constraint>>
): Map<number, Known> => new Map(Array.from(schemas, ([status, those]) => [status, knownBy(those)]))

/** What may be said before an endpoint is found, or instead of finding one. */
const edge: Answers = new Map([
  [400, knownBy([wire(InvalidRequest)])],
  [404, knownBy([wire(NotFound)])],
  [405, knownBy([wire(MethodNotAllowed)])],
  [408, (body) => saysCode(body, "invalid_request")],
  [413, knownBy([wire(PayloadTooLarge)])],
  [426, knownBy([wire(UpgradeRequired)])],
  [431, (body) => saysCode(body, "payload_too_large")]
])

const Bare = Schema.Struct({
  error: Schema.Struct({ code: Schema.String, message: Schema.String })
})
const isBare = Schema.is(Bare)

/** The form of what is said before there is a request. */
const saysCode = (body: unknown, code: string): boolean => isBare(body) && body.error.code === code

/** Whether an endpoint, or the service instead of it, may answer so. */
export const mayFail = (endpoint: Endpoint | undefined, status: number, body: unknown): boolean =>
  endpoint?.errors.get(status)?.(body) === true ||
  edge.get(status)?.(body) === true ||
  (status === 400 && saysCode(body, "invalid_request"))

const readEndpoints = (): ReadonlyArray<Endpoint> => {
  const found: Array<Endpoint> = []
  HttpApi.reflect(Api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint: { method, path }, errors, successes }) => {
      const written = path.replace(/:([A-Za-z]+)/g, "{$1}")
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
        successes: answersOf(successes),
        errors: answersOf(errors)
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
