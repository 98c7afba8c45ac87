/** HTTP to the sockets of a workerd process. */
import type { Agent, IncomingMessage } from "node:http"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { CallRefused, NoResponse } from "./call-end.ts"
import { OutgoingRequest } from "./outgoing-request.ts"
import { digestOf, type ProcessSeal, type SealedFacts } from "./process-seal.ts"

export interface WorkerRequest {
  /** Agent of the connection; undefined opens a connection for this request alone. */
  readonly agent: Agent | undefined
  readonly socketPath: string
  readonly seal: ProcessSeal
  readonly facts: Pick<SealedFacts, "call" | "isFull" | "kind">
}

/** Error: the response exceeds the size limit of the service. */
export class ReplyTooLarge extends Error {}

const readAll = async (response: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue
    bytes += chunk.length
    if (bytes > functionRuntime.replyMaxBytes) {
      response.destroy()
      throw new ReplyTooLarge(`The reply is larger than ${functionRuntime.replyMaxBytes} bytes.`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

export interface WorkerReply {
  readonly status: number
  /** Outcome that the entry point reports; `failed` for a failed call. */
  readonly outcome: string
  readonly body: unknown
}

/** Posts JSON and reads a JSON reply. */
export const postJson = async (
  { agent, facts, seal, socketPath }: WorkerRequest,
  input: unknown,
  signal: AbortSignal
): Promise<WorkerReply> => {
  const body = JSON.stringify(input)
  const method = "POST"
  const framing = String(Buffer.byteLength(body))
  const outgoing = new OutgoingRequest({
    to: { agent: agent ?? false, socketPath, signal },
    method,
    path: "/",
    framing,
    headers: {
      ...seal.headersOf({ ...facts, method, framing, digest: digestOf(body) }),
      "content-type": "application/json"
    }
  })
  outgoing.sent.end(body)
  const { message } = await outgoing.response
  const text = await readAll(message)
  const given = message.headers["x-svc-outcome"]
  const outcome = Array.isArray(given) ? given[0] : given
  if (outcome === "refused") throw new CallRefused()
  if (outcome === undefined) throw new NoResponse()
  return {
    status: message.statusCode ?? 0,
    outcome,
    body: text === "" ? undefined : (JSON.parse(text) as unknown)
  }
}
