/**
 * A small HTTP server with scripted responses, for responses that a real service does not give on
 * demand.
 */
import { createServer, type IncomingHttpHeaders } from "node:http"
import { Effect } from "effect"

interface FakeResponse {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Responses by method and path (`GET /v1/config`). `sent` collects request headers. Closes with the scope. */
export const fakeService = (responses: Readonly<Record<string, FakeResponse>>) =>
  Effect.gen(function* () {
    const sent: Array<IncomingHttpHeaders> = []
    const server = createServer((request, response) => {
      const {
        body = {},
        headers = {},
        status = 200
      } = responses[`${request.method} ${request.url}`] ?? { status: 404 }
      sent.push(request.headers)
      response.writeHead(status, { "content-type": "application/json", ...headers })
      response.end(JSON.stringify(body))
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => {
        server.listen(0, "127.0.0.1", () => resume(Effect.void))
      }),
      () =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return { url: `http://127.0.0.1:${port}`, sent }
  })
