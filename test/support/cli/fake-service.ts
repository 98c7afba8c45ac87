/**
 * A small HTTP server with scripted responses, for responses that a real service does not give on
 * demand.
 */
import type { IncomingHttpHeaders } from "node:http"
import { Effect } from "effect"
import { startServer } from "../local-server.ts"

interface FakeResponse {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** The answer to the question what the key opens: a secret key of development. */
const keyAnswer: FakeResponse = {
  body: {
    kind: "secret",
    prefix: "sk_fake0",
    environment: "development",
    project: { id: `prj_${"0".repeat(26)}`, name: "Fake", slug: "fake-0000" }
  }
}

/** Responses by method and path (`GET /v1/config`). `sent` collects request headers. Closes with the scope. */
export const fakeService = (responses: Readonly<Record<string, FakeResponse>>) =>
  Effect.gen(function* () {
    const all: typeof responses = { "GET /v1/key": keyAnswer, ...responses }
    const sent: Array<IncomingHttpHeaders> = []
    const { port } = yield* startServer((request, response) => {
      const {
        body = {},
        headers = {},
        status = 200
      } = all[`${request.method} ${request.url}`] ?? {
        status: 404
      }
      sent.push(request.headers)
      response.writeHead(status, { "content-type": "application/json", ...headers })
      response.end(JSON.stringify(body))
    })
    return { url: `http://127.0.0.1:${port}`, sent }
  })
