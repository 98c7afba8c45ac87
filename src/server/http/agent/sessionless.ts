/**
 * MCP revisions of 2025 over HTTP, without sessions. A client begins with `initialize`, gets no
 * session id, and sends each message in a request of its own. So each may reach another runner.
 */
import { Cause, Context, Effect, Option, Schema, Stream } from "effect"
import { AiError, Tool } from "effect/ai"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import manifest from "../../../../package.json" with { type: "json" }
import { AgentTools, ToolFailure } from "./tools.ts"

const { name, version } = manifest

/** Revisions with `initialize`, the newest first. */
const revisions = ["2025-11-25", "2025-06-18", "2025-03-26"] as const

export const instructions =
  "Operates one environment of a player backend. Show a person what you are about to change before you " +
  "call a tool that is marked as destructive."

const Id = Schema.Union([Schema.String, Schema.Finite])

/** Message of a client. A request has an id, a notification has none. */
const Message = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.optionalKey(Id),
  method: Schema.String,
  params: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
type Message = typeof Message.Type

const decodeMessage = Schema.decodeUnknownOption(Schema.fromJsonString(Message))

const errors = { parse: -32700, method: -32601, params: -32602, internal: -32603 } as const

const failed = (code: number, message: string) => ({ error: { code, message } })

const isTool = (text: unknown): text is keyof typeof AgentTools.tools =>
  typeof text === "string" && Object.hasOwn(AgentTools.tools, text)

const toolList = Object.values(AgentTools.tools).map((tool) => ({
  name: tool.name,
  description: Tool.getDescription(tool),
  inputSchema: Tool.getJsonSchema(tool),
  annotations: {
    readOnlyHint: Context.get(tool.annotations, Tool.Readonly),
    destructiveHint: Context.get(tool.annotations, Tool.Destructive),
    idempotentHint: Context.get(tool.annotations, Tool.Idempotent),
    openWorldHint: false
  }
}))

const text = (value: string) => [{ type: "text", text: value }]

const makeCall = Effect.map(AgentTools, (tools) =>
  Effect.fnUntraced(
    function* ({ arguments: given = {}, name: tool }: Record<string, unknown>) {
      if (!isTool(tool)) return failed(errors.params, `There is no tool ${String(tool)}.`)
      const last = yield* tools
        .handle(tool, JSON.parse(JSON.stringify(given)))
        .pipe(Stream.unwrap, Stream.runLast)
      if (Option.isNone(last)) return failed(errors.internal, "The tool returned nothing.")
      const { encodedResult } = last.value
      return {
        result: { content: text(JSON.stringify(encodedResult)), structuredContent: encodedResult }
      }
    },
    Effect.catchCause((cause): Effect.Effect<object> => {
      const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
      if (failure instanceof ToolFailure) {
        return Effect.succeed({ result: { content: text(failure.message), isError: true } })
      }
      if (AiError.isAiError(failure)) return Effect.succeed(failed(errors.params, failure.message))
      return Effect.as(
        Effect.logError("Failed to run a tool of an agent", cause),
        failed(errors.internal, "The tool failed. The log of the service has the reason.")
      )
    })
  )
)

/** Answers a message of the revisions of 2025; undefined for a notification. */
const makeAnswer = Effect.map(makeCall, (call) =>
  Effect.fnUntraced(function* ({ method, params = {} }: Message) {
    switch (method) {
      case "initialize": {
        const asked = params["protocolVersion"]
        const protocolVersion = revisions.find((revision) => revision === asked) ?? revisions[0]
        const serverInfo = { name, version }
        const capabilities = { tools: { listChanged: false } }
        return { result: { protocolVersion, capabilities, serverInfo, instructions } }
      }
      case "ping":
        return { result: {} }
      case "tools/list":
        return { result: { tools: toolList } }
      case "tools/call":
        return yield* call(params)
      default:
        return failed(errors.method, `There is no method ${method}.`)
    }
  })
)

const rpc = (id: Message["id"] | null, answer: object) =>
  HttpServerResponse.jsonUnsafe({ jsonrpc: "2.0", id, ...answer })

/** Serves clients that begin with `initialize`, without a session. */
export const makeServe = Effect.map(makeAnswer, (answer) =>
  Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    const message = decodeMessage(yield* Effect.orDie(request.text))
    if (Option.isNone(message)) {
      return rpc(null, failed(errors.parse, "Expected one JSON-RPC 2.0 request or notification."))
    }
    const { id } = message.value
    if (id === undefined) return HttpServerResponse.empty({ status: 202 })
    return rpc(id, yield* answer(message.value))
  })
)
