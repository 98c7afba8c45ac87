/**
 * MCP revisions of 2025 over HTTP, without sessions. A client begins with `initialize`, gets no
 * session id, and sends each message in a request of its own. So each may reach another runner.
 */
import { Effect, Option, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import manifest from "../../../../package.json" with { type: "json" }
import { makeCallOperation, operationTools } from "./operations.ts"

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

const toolList = Array.from(operationTools.values(), ({ tool }) => tool)

const isArguments = Schema.is(Schema.Record(Schema.String, Schema.Unknown))

const makeCall = Effect.map(makeCallOperation, (callOperation) =>
  Effect.fnUntraced(
    function* ({ arguments: given = {}, name: tool }: Record<string, unknown>) {
      const operation = operationTools.get(String(tool))
      if (operation === undefined) {
        return failed(errors.params, `There is no tool ${String(tool)}.`)
      }
      if (!isArguments(given)) return failed(errors.params, "Expected arguments by name.")
      return { result: yield* callOperation(operation, given) }
    },
    Effect.catchDefect((defect) =>
      Effect.as(
        Effect.logError("Failed to run a tool of an agent", defect),
        failed(errors.internal, "The tool failed. The log of the service has the reason.")
      )
    )
  )
)

/** Answers a message of the revisions of 2025; undefined for a notification. */
const makeReply = Effect.map(makeCall, (call) =>
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

const rpc = (id: Message["id"] | null, reply: object) =>
  HttpServerResponse.jsonUnsafe({ jsonrpc: "2.0", id, ...reply })

/** Serves clients that begin with `initialize`, without a session. */
export const makeServe = Effect.map(makeReply, (reply) =>
  Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    const message = decodeMessage(yield* Effect.orDie(request.text))
    if (Option.isNone(message)) {
      return rpc(null, failed(errors.parse, "Expected one JSON-RPC 2.0 request or notification."))
    }
    const { id } = message.value
    if (id === undefined) return HttpServerResponse.empty({ status: 202 })
    return rpc(id, yield* reply(message.value))
  })
)
