/**
 * `svc mcp`: the agent tool over standard input and output. It passes each message of the client to
 * `/mcp` of the service, with the key of the environment, and writes the responses. Standard output carries
 * nothing else; everything for people goes to standard error.
 */
import { Effect, Option, Redacted, Schema, Semaphore, Stdio, Stream } from "effect"
import { Command } from "effect/cli"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { environmentFlag } from "./files.ts"
import { note, writeMessage } from "./output.ts"
import { resolveTarget } from "./checked-target.ts"
import { nameOf, type Target } from "./target.ts"

/** Messages that are under way at a time. */
const concurrency = 8

const requestSeconds = 60

/** The part of a message that the bridge reads: a notification has no id and gets no response. */
const Message = Schema.fromJsonString(
  Schema.Struct({ id: Schema.optionalKey(Schema.Union([Schema.String, Schema.Finite])) })
)

const decodeMessage = Schema.decodeUnknownOption(Message)

const failure = (id: string | number | null, message: string): string =>
  JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32603, message } })

/** Sends a message; returns the line of its response, none for a notification. */
const forward = Effect.fnUntraced(
  function* ({ secretKey, url }: Target, line: string) {
    const message = decodeMessage(line)
    if (Option.isNone(message)) return Option.some(failure(null, "Expected one JSON-RPC message."))
    const { id } = message.value
    const client = yield* HttpClient.HttpClient
    const request = HttpClientRequest.post(`${url}/mcp`).pipe(
      HttpClientRequest.setHeaders({
        accept: "application/json, text/event-stream",
        "x-svc-key": Redacted.value(secretKey)
      }),
      HttpClientRequest.bodyText(line, "application/json")
    )
    const reply = yield* client.execute(request).pipe(
      Effect.flatMap((response) => Effect.map(response.text, (text) => ({ response, text }))),
      Effect.timeout(`${requestSeconds} seconds`),
      Effect.result
    )
    if (id === undefined) return Option.none()
    if (reply._tag === "Failure") return Option.some(failure(id, `Failed to reach ${url}.`))
    const { response, text } = reply.success
    if (response.status === 200) return Option.some(text.trim())
    return Option.some(failure(id, `${url} refused the request (${response.status}): ${text}`))
  },
  Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" })
)

const bridge = Effect.fnUntraced(function* (target: Target) {
  const stdio = yield* Stdio.Stdio
  const writing = yield* Semaphore.make(1)
  const write = (line: string) => writing.withPermits(1)(writeMessage(line))
  yield* note(`svc mcp: serving ${nameOf(target)} of ${target.url}`)
  yield* stdio.stdin.pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.filter((line) => line.trim() !== ""),
    Stream.mapEffect(
      (line) =>
        Effect.flatMap(forward(target, line), (reply) =>
          Option.isSome(reply) ? write(reply.value) : Effect.void
        ),
      { concurrency, unordered: true }
    ),
    Stream.runDrain
  )
})

/** `svc mcp`. */
export const agentCommand = Command.make(
  "mcp",
  { env: environmentFlag },
  Effect.fn(function* ({ env }) {
    yield* bridge(yield* resolveTarget(env))
  })
).pipe(Command.withDescription("Serve the agent tool (MCP) over standard input and output"))
