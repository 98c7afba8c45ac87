/** The server of a developer that verifies stats, and the config of its game. */
import type { ServerResponse } from "node:http"
import { Effect } from "effect"
import { startServer } from "./local-server.ts"

/** A request that the developer's server received. */
export interface WebhookCall {
  readonly signature: string
  readonly contentType: string
  readonly body: string
}

export type Reply = (response: ServerResponse, call: WebhookCall) => void

export const json =
  (body: unknown): Reply =>
  (response) =>
    response.end(typeof body === "string" ? body : JSON.stringify(body))

/** The developer's server on a loopback port. */
export const developersServer = Effect.fnUntraced(function* (reply: Reply) {
  const received: Array<WebhookCall> = []
  const { port } = yield* startServer((incoming, response) => {
    const chunks: Array<Buffer> = []
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
    incoming.on("end", () => {
      const call = {
        signature: String(incoming.headers["svc-signature"]),
        contentType: String(incoming.headers["content-type"]),
        body: Buffer.concat(chunks).toString()
      }
      received.push(call)
      reply(response, call)
    })
  })
  return { url: `http://localhost:${port}/verify`, received }
})

/** A game that verifies its stats with this webhook. */
export const gameWith = (webhook: object) => ({
  features: { stats: true, statsVerification: true },
  stats: [{ key: "kills" }, { key: "best", aggregation: "max", maxPerSubmit: 100 }],
  integrity: { stats: { maxSubmitsPerMinute: 600, rules: [{ stat: "kills", min: 0 }], webhook } }
})
