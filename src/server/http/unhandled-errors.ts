/** Courses of the requests that run outside of the router, and the log of errors that nobody has handled. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { Effect, Layer } from "effect"
import { InternalError, toWire } from "#rpc/errors/codes"
import { givenRequestId, type RequestCourse, watchErrors } from "#server/platform/request-errors"

/** Random prefix of this process, and a counter: unique and cheap. */
const prefix = process.pid.toString(36)
let requests = 0

const idOf = (request: IncomingMessage): string =>
  givenRequestId(request) ?? `${prefix}-${(requests += 1).toString(36)}`

const fail = (response: ServerResponse, requestId: string): void => {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const body = JSON.stringify({ error: toWire(new InternalError({ details: { requestId } })) })
  response.writeHead(500, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    connection: "close"
  })
  response.end(body)
}

/** Returns the course of a request. What outlives the request does not keep it in memory. */
export const courseOf = (request: IncomingMessage, response: ServerResponse): RequestCourse => {
  const requestId = idOf(request)
  const weak = new WeakRef(response)
  return {
    requestId,
    end: () => {
      const held = weak.deref()
      if (held !== undefined) fail(held, requestId)
    }
  }
}

/** Returns the course of a WebSocket. */
export const courseOfSocket = (request: IncomingMessage, socket: Duplex): RequestCourse => {
  const weak = new WeakRef(socket)
  return { requestId: idOf(request), end: () => void weak.deref()?.destroy() }
}

/** Logs the errors that nobody has handled, and ends the process after those that are not of a request. */
export const UnhandledErrors = Layer.effectDiscard(
  Effect.gen(function* () {
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const start = () =>
      watchErrors({
        onRequestError: (error, { requestId }) =>
          void runFork(
            Effect.annotateLogs(Effect.logError("Failed to handle a request", error), { requestId })
          ),
        onFatal: (error) =>
          void runFork(
            Effect.logFatal("The process ends after an error that nobody handled", error)
          )
      })
    yield* Effect.acquireRelease(Effect.sync(start), (stop) => Effect.sync(stop))
  })
)
