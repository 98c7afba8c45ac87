/**
 * A proxy before the service that loses answers: it passes a request on, and cuts the connection of the
 * client when the service has answered. The service has then executed the request.
 */
import { type IncomingMessage, request, type ServerResponse } from "node:http"
import { buffer } from "node:stream/consumers"
import { Effect } from "effect"
import { startServer } from "../local-server.ts"

export interface CuttingProxy {
  readonly url: string
  /** Loses the next answers to requests whose path starts so. */
  readonly lose: (path: string, answers: number) => void
  /** Resolves when the service has answered the next request with such a path, before it is lost. */
  readonly nextLost: () => Promise<void>
}

/** Starts a proxy before a service. */
export const startCuttingProxy = Effect.fnUntraced(function* (target: string) {
  let lost = { path: "", answers: 0 }
  let wake: () => void = () => undefined

  const isLost = (path: string): boolean => {
    if (lost.answers === 0 || !path.startsWith(lost.path)) return false
    lost = { ...lost, answers: lost.answers - 1 }
    return true
  }

  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { headers, method = "GET", url: path = "/" } = incoming
    // A preflight spends nothing.
    const loses = method !== "OPTIONS" && isLost(path)
    const body = await buffer(incoming)
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const { host, port } = new URL(target)
      const passed = request(
        { host: "127.0.0.1", port, path, method, headers: { ...headers, host } },
        resolve
      )
      passed.on("error", reject)
      passed.end(body)
    })
    const text = await buffer(answer)
    if (loses) {
      outgoing.destroy()
      return wake()
    }
    outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
    outgoing.end(text)
  }

  const { port } = yield* startServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch(() => outgoing.destroy())
  })
  const proxy: CuttingProxy = {
    url: `http://localhost:${port}`,
    lose: (path, answers) => {
      lost = { path, answers }
    },
    nextLost: () =>
      new Promise((resolve) => {
        wake = resolve
      })
  }
  return proxy
})
