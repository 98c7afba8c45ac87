/**
 * Socket through which the bindings of one environment reach the service: queues and the server API.
 * Only the process of that environment can open it where each has a user of its own. Each call proves by
 * a seal that it comes from a binding of that process.
 */
import { chownSync, rmSync } from "node:fs"
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server
} from "node:http"
import { functionRuntime } from "#rpc/functions/runtime-limits"

export interface HostCall {
  readonly method: string
  /** `/queues/<name>` or `/api/...`. */
  readonly path: string
  readonly body: Buffer
}

export interface HostReply {
  readonly status: number
  readonly body: string | Uint8Array
}

export type HostHandler = (call: HostCall) => Promise<HostReply>

export interface BindingsOptions {
  /** Answers a call; must not reject. */
  readonly handle: HostHandler
  /** Whether a call comes from a binding of the process, and for the first time. */
  readonly isAuthentic: (headers: IncomingHttpHeaders, call: HostCall) => boolean
}

const readBody = async (request: IncomingMessage): Promise<Buffer | undefined> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue
    bytes += chunk.length
    if (bytes > functionRuntime.replyMaxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Maximum number of concurrent calls of one environment. */
const callsAtOnce = 64

/** Listens on a path that belongs to a user. */
export const listenForBindings = async (
  path: string,
  uid: number | undefined,
  { handle, isAuthentic }: BindingsOptions
): Promise<Server> => {
  rmSync(path, { force: true })
  let underWay = 0
  const server = createServer((request, response) => {
    response.on("error", () => undefined)
    const reply = async (): Promise<HostReply> => {
      // Simulators of miniflare report to it what nobody reads here.
      if (!/^\/(?:queues|api)\//.test(request.url ?? "")) return { status: 204, body: "" }
      if (underWay >= callsAtOnce) return { status: 503, body: "too many calls at once" }
      underWay += 1
      try {
        const body = await readBody(request)
        if (body === undefined) return { status: 413, body: "the call is too large" }
        const call = { method: request.method ?? "", path: request.url ?? "", body }
        if (isAuthentic(request.headers, call)) return await handle(call)
        return { status: 403, body: "the call does not come from a binding" }
      } finally {
        underWay -= 1
      }
    }
    reply().then(
      ({ body, status }) => {
        response.writeHead(status, { "content-type": "application/json" })
        response.end(body)
      },
      () => response.destroy()
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject)
    server.listen(path, resolve)
  })
  if (uid !== undefined) chownSync(path, uid, uid)
  server.unref()
  return server
}
