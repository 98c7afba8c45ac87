/** Service side of the functions' bindings: queues and the server API. */
import { Effect, Schema } from "effect"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { FunctionsQueues, FunctionsServerApi, type NewMessage } from "../control-plane.ts"
import type { HostCall, HostReply } from "./host-socket.ts"

/** Messages in the format of the queue worker. */
const Messages = Schema.fromJsonString(
  Schema.Array(
    Schema.Struct({
      contentType: Schema.Literals(["json", "text", "bytes"]),
      body: Schema.String,
      delaySeconds: Schema.optionalKey(
        Schema.Int.check(
          Schema.isBetween({ minimum: 0, maximum: functionRuntime.messageDelaySeconds })
        )
      )
    })
  ).check(Schema.isMinLength(1), Schema.isMaxLength(functionRuntime.messagesPerSend))
)
const decodeMessages = Schema.decodeUnknownEffect(Messages)

const text = (status: number, body: string): HostReply => ({ status, body })

const bytesOf = ({ body, contentType }: { body: string; contentType: string }): Uint8Array =>
  contentType === "bytes" ? Buffer.from(body, "base64") : Buffer.from(body)

const apiPrefix = "/api"

/** Answers the calls of an environment's bindings. */
export const makeBindings = Effect.gen(function* () {
  const queues = yield* FunctionsQueues
  const serverApi = yield* FunctionsServerApi

  const send = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    name: string,
    body: string
  ) {
    const decoded = yield* Effect.result(decodeMessages(body))
    if (decoded._tag === "Failure") {
      return text(
        400,
        `send 1 to ${functionRuntime.messagesPerSend} messages, with a delay of at most 12 hours`
      )
    }
    const messages = decoded.success.map((message): NewMessage => ({
      contentType: message.contentType,
      body: bytesOf(message),
      delaySeconds: message.delaySeconds ?? 0
    }))
    if (messages.some((message) => message.body.length > functionRuntime.messageMaxBytes)) {
      return text(413, `a message may have ${functionRuntime.messageMaxBytes} bytes`)
    }
    const outcome = yield* queues.send(environmentId, name, messages)
    return outcome === "stored" ? text(200, "{}") : text(507, "the queues are full")
  })

  return Effect.fn("Functions.binding")(function* (
    environmentId: EnvironmentId,
    queueNames: ReadonlySet<string>,
    { body, method, path }: HostCall
  ) {
    const [, kind, name = ""] = path.split("/", 3)
    if (kind === "queues") {
      if (!queueNames.has(name)) return text(404, "there is no such queue")
      return yield* send(environmentId, name, body.toString("utf8"))
    }
    const call = { method, path: path.slice(apiPrefix.length), body: new Uint8Array(body) }
    return yield* serverApi.call(environmentId, call)
  })
})
