/** HTTP to the sockets of a workerd process. */
import { type Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http"
import { functionRuntime as limits } from "#rpc/function-runtime-limits"

export interface WorkerRequest {
  /** Agent of the connection; undefined opens a connection for this request alone. */
  readonly agent: Agent | undefined
  readonly socketPath: string
  readonly headers: OutgoingHttpHeaders
}

/** Error: the answer exceeds the size limit of the service. */
export class ReplyTooLarge extends Error {}

const readAll = async (response: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue
    bytes += chunk.length
    if (bytes > limits.replyMaxBytes) {
      response.destroy()
      throw new ReplyTooLarge(`The answer is larger than ${limits.replyMaxBytes} bytes.`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

export interface WorkerReply {
  readonly status: number
  /** Outcome that the entry point reports; `failed` for a failed call. */
  readonly outcome: string | undefined
  readonly body: unknown
}

/** Posts JSON and reads a JSON answer. */
export const postJson = async (
  { agent, headers, socketPath }: WorkerRequest,
  body: unknown,
  signal: AbortSignal
): Promise<WorkerReply> => {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(
      {
        agent: agent ?? false,
        socketPath,
        method: "POST",
        path: "/",
        headers: { ...headers, "content-type": "application/json" },
        signal
      },
      resolve
    )
    sent.on("error", reject)
    sent.end(JSON.stringify(body))
  })
  const text = await readAll(response)
  const outcome = response.headers["x-svc-outcome"]
  return {
    status: response.statusCode ?? 0,
    outcome: Array.isArray(outcome) ? outcome[0] : outcome,
    body: text === "" ? undefined : (JSON.parse(text) as unknown)
  }
}
