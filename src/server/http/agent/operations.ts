/**
 * Tools of the MCP server: each endpoint for a secret key that declares a tool. The parameters of a tool
 * are those of its endpoint. A call runs in the process, which decodes, checks and audits it as HTTP does.
 */
import { Context, Effect, type JsonSchema, Option, Result, Schema } from "effect"
import { McpSchema, McpServer } from "effect/ai"
import { HttpServerRequest } from "effect/http"
import { HttpApi, type HttpApiEndpoint, type HttpApiGroup, OpenApi } from "effect/http-api"
import { Api } from "#rpc/api"
import { InvalidRequest, toWire } from "#rpc/errors/codes"
import { InProcessApi } from "#rpc/in-process"
import { type AgentTool, isOpenTo, Operation } from "#rpc/operations"
import { invalidField } from "#server/platform/invalid-request"
import { InProcess, type InProcessCall, KnownCaller } from "#server/platform/in-process"

type Given = Readonly<Record<string, unknown>>

interface Part {
  readonly properties: Readonly<Record<string, JsonSchema.JsonSchema>>
  readonly required: ReadonlyArray<string>
  readonly definitions: JsonSchema.Definitions
}

const nothing: Part = { properties: {}, required: [], definitions: {} }

const decodePart = Schema.decodeUnknownSync(
  Schema.Struct({
    properties: Schema.optionalKey(Schema.Record(Schema.String, Schema.Any)),
    required: Schema.optionalKey(Schema.Array(Schema.String))
  })
)

/** Properties of a part of the request, as values instead of texts of a path or query. */
const partOf = (schema: Schema.Top | undefined): Part => {
  if (schema === undefined) return nothing
  const { definitions, schema: json } = Schema.toJsonSchemaDocument(Schema.toType(schema))
  const { properties = {}, required = [] } = decodePart(json)
  return { properties, required, definitions }
}

/** A tool, as MCP lists it, and the endpoint that it calls. */
interface OperationTool {
  readonly tool: McpSchema.Tool
  readonly callOf: (given: Given) => InProcessCall | InvalidRequest
}

const isMethod = Schema.is(Schema.Literals(["DELETE", "GET", "PATCH", "POST", "PUT"]))

/** Returns the refusal of arguments that the tool does not have, or that its path lacks. */
const refusalOf = (given: Given, known: Part, inPath: Part): InvalidRequest | undefined => {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known.properties, name))
  const missing = inPath.required.filter((name) => !Object.hasOwn(given, name))
  const issues = [
    ...unknown.map((path) => ({ path, message: "The tool has no such argument" })),
    ...missing.map((path) => ({ path, message: "Missing argument" }))
  ]
  return issues.length === 0 ? undefined : new InvalidRequest({ details: { issues } })
}

/** The refusal of arguments that no request can carry: lone surrogates in a path, or too many levels. */
const unsendable = invalidField(
  "arguments",
  "Expected well-formed texts and fewer levels of nesting"
)

/** The call of an endpoint with these arguments. */
const callWith = (
  given: Given,
  { method, path }: { readonly method: InProcessCall["method"]; readonly path: string },
  parts: { readonly params: Part; readonly query: Part; readonly payload: Part }
): InProcessCall => {
  const pick = ({ properties }: Part) =>
    Object.entries(given).filter(([name]) => Object.hasOwn(properties, name))
  const filled = pick(parts.params).reduce(
    (text, [name, value]) => text.replace(`:${name}`, () => encodeURIComponent(String(value))),
    path
  )
  const search = new URLSearchParams(
    pick(parts.query).map(([name, value]) => [name, String(value)])
  )
  return {
    method,
    path: search.size === 0 ? filled : `${filled}?${search}`,
    ...(method === "GET" ? {} : { body: JSON.stringify(Object.fromEntries(pick(parts.payload))) })
  }
}

const toolOf = (facts: AgentTool, endpoint: HttpApiEndpoint.Top): OperationTool => {
  const { method, path } = endpoint
  if (!isMethod(method)) throw new Error(`The tool ${facts.name} cannot call ${method}`)
  const params = partOf(endpoint.params)
  const query = partOf(endpoint.query)
  const payload = partOf(endpoint.payload.get("application/json")?.schemas[0])
  const all: Part = {
    properties: { ...params.properties, ...query.properties, ...payload.properties },
    required: [...params.required, ...query.required, ...payload.required],
    definitions: { ...params.definitions, ...query.definitions, ...payload.definitions }
  }
  const reads = facts.effect === "reads"
  return {
    tool: new McpSchema.Tool({
      name: facts.name,
      description:
        facts.description ?? Context.getOrUndefined(endpoint.annotations, OpenApi.Summary),
      inputSchema: {
        type: "object",
        properties: all.properties,
        required: all.required,
        additionalProperties: false,
        ...(Object.keys(all.definitions).length === 0 ? {} : { $defs: all.definitions })
      },
      annotations: {
        readOnlyHint: reads,
        destructiveHint: facts.effect === "destroys",
        idempotentHint: facts.idempotent ?? reads,
        openWorldHint: false
      }
    }),
    callOf: (given) =>
      refusalOf(given, all, params) ??
      Result.getOrElse(
        Result.try(() => callWith(given, { method, path }, { params, query, payload })),
        () => unsendable
      )
  }
}

const toolsOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): ReadonlyArray<OperationTool> => {
  const found: Array<OperationTool> = []
  HttpApi.reflect(api, {
    predicate: ({ endpoint }) => isOpenTo("agent", endpoint),
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      const { tool } = Context.get(endpoint.annotations, Operation)
      if (tool !== undefined) found.push(toolOf(tool, endpoint))
    }
  })
  return found
}

/** All tools by name. */
export const operationTools: ReadonlyMap<string, OperationTool> = new Map(
  [...toolsOf(Api), ...toolsOf(InProcessApi)]
    .toSorted((one, other) => (one.tool.name < other.tool.name ? -1 : 1))
    .map((operation) => [operation.tool.name, operation])
)

const decoder = new TextDecoder()

const Failure = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String,
    message: Schema.String,
    details: Schema.optionalKey(Schema.Unknown)
  })
})
const decodeFailure = Schema.decodeUnknownSync(Failure)

const texts = (text: string) => [{ type: "text" as const, text }]

/** The result of a refused call: an agent can mend its arguments by the code, message and details. */
const failureOf = (body: unknown) => {
  const { code, details, message } = decodeFailure(body).error
  const more = details === undefined ? "" : ` ${JSON.stringify(details)}`
  return { content: texts(`${code}: ${message}${more}`), isError: true }
}

/** Calls a tool for the known caller of the request. */
export const makeCallOperation = Effect.map(InProcess, (inProcess) =>
  Effect.fnUntraced(function* ({ callOf }: OperationTool, given: Given) {
    const caller = yield* KnownCaller
    if (caller === undefined) return yield* Effect.die(new Error("A tool was called without a key"))
    const call = callOf(given)
    if (call instanceof InvalidRequest) return failureOf({ error: toWire(call) })
    const client = Option.getOrUndefined(
      yield* Effect.serviceOption(HttpServerRequest.HttpServerRequest)
    )
    const { body, status } = yield* inProcess.call(caller, { ...call, client })
    const value: unknown = JSON.parse(decoder.decode(body))
    if (status >= 400) return failureOf(value)
    return { content: texts(JSON.stringify(value)), structuredContent: value }
  })
)

/** Registers the tools with the server of the revision of 2026. */
export const registerOperations = Effect.gen(function* () {
  const call = yield* makeCallOperation
  const server = yield* McpServer.McpServer
  for (const operation of operationTools.values()) {
    yield* server.addTool({
      tool: operation.tool,
      annotations: Context.empty(),
      handle: (given) =>
        Effect.map(call(operation, given ?? {}), (result) => new McpSchema.CallToolResult(result))
    })
  }
})
