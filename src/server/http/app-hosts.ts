/**
 * Sends requests for hosts of apps to the server of apps, and those for functions to their data plane, past
 * the routes of the service. The card images of an app are at `/.card.png` and `/.card/<id>.png` of its own
 * host, too, and the page of its share links at `/.svc/s`.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, Layer } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { FunctionDataPlane } from "#server/features/functions/data-plane"
import { refuseSocket } from "#server/features/functions/host/socket"
import { HostedApps } from "#server/features/hosting/apps"
import { sendPage } from "#server/features/hosting/pages"
import { AppServer } from "#server/features/hosting/serve"
import { CardImages, type ServedCard } from "#server/features/share/card-images"
import { forwardQuery, makeForwardPage } from "#server/features/share/forward-page"
import { inCourse } from "#server/platform/request-errors"
import { HttpServerHandle } from "./server.ts"
import { courseOf, courseOfSocket } from "./unhandled-errors.ts"

const cardForm = /^\/\.card(?:\/([0-9A-Za-z]+))?\.png(?:\?|$)/

const sendCard = (
  request: IncomingMessage,
  response: ServerResponse,
  { headers, png }: ServedCard
): void => {
  if (png === undefined) {
    response.writeHead(304, headers)
    return void response.end()
  }
  response.writeHead(200, {
    ...headers,
    "content-type": "image/png",
    "content-length": png.byteLength,
    "x-content-type-options": "nosniff"
  })
  response.end(request.method === "HEAD" ? undefined : png)
}

/** Serves requests for the cards of an app. Returns false for any other request. */
const makeServeCard = Effect.gen(function* () {
  const apps = yield* HostedApps
  const cards = yield* CardImages
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  return (host: string, request: IncomingMessage, response: ServerResponse): boolean => {
    const { headers, method, url = "" } = request
    const match = cardForm.exec(url)
    if (match === null || (method !== "GET" && method !== "HEAD")) return false
    const label = apps.labelOf(host)
    if (label === undefined) return false
    const isHead = method === "HEAD"
    const found = cards.find(label, match[1], headers["if-none-match"])
    runFork(
      found.pipe(
        Effect.map((card) => sendCard(request, response, card)),
        Effect.catchTags({
          not_found: () => Effect.sync(() => sendPage(response, "missing", isHead)),
          share_images_disabled: () => Effect.sync(() => sendPage(response, "missing", isHead)),
          unavailable: () => Effect.sync(() => sendPage(response, "busy", isHead))
        }),
        Effect.catchCause((cause) => {
          sendPage(response, "broken", isHead)
          return Effect.logWarning("Failed to serve a card", cause)
        })
      )
    )
    return true
  }
})

/** Serves the page of share links on the host of a live app. Returns false for any other request. */
const makeServeForward = Effect.gen(function* () {
  const apps = yield* HostedApps
  const pageOf = yield* makeForwardPage
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  return (host: string, request: IncomingMessage, response: ServerResponse): boolean => {
    const { method, url = "" } = request
    const query = forwardQuery(url)
    if (query === undefined || (method !== "GET" && method !== "HEAD")) return false
    const isHead = method === "HEAD"
    const send = Effect.gen(function* () {
      const app = apps.known(host) ?? (yield* apps.load(host))
      if (app === "unknown" || !app.enabled || app.site === undefined) {
        return sendPage(response, "missing", isHead)
      }
      const { body, headers } = yield* pageOf(app, query)
      response.writeHead(200, headers)
      response.end(isHead ? undefined : body)
    })
    runFork(
      Effect.catchCause(send, (cause) => {
        sendPage(response, "broken", isHead)
        return Effect.logWarning("Failed to serve the page of a share link", cause)
      })
    )
    return true
  }
})

/** The refusal of a socket on a node that is full. */
const full = new Unavailable()

export const AppHosts = Layer.effectDiscard(
  Effect.gen(function* () {
    const { hasRoom, serveApps } = yield* HttpServerHandle
    const functions = yield* FunctionDataPlane
    const { appHostOf, serve } = yield* AppServer
    const serveCard = yield* makeServeCard
    const serveForward = yield* makeServeForward
    serveApps({
      isFor: (request) => appHostOf(request) !== undefined || functions.isFor(request),
      serve: (request, response) => {
        const host = appHostOf(request)
        const isForFunction = functions.isFor(request)
        if (!isForFunction && host === undefined) return false
        // These handlers are callbacks of Node. The router runs its handlers in fibers, which fail alone.
        inCourse(courseOf(request, response), () => {
          if (isForFunction || host === undefined) functions.serve(request, response)
          else if (!serveCard(host, request, response) && !serveForward(host, request, response)) {
            serve(host, request, response)
          }
        })
        return true
      },
      mayUpgrade: functions.isFor,
      upgrade: (request, socket, head) => {
        if (!hasRoom()) return refuseSocket(socket, full)
        inCourse(courseOfSocket(request, socket), () => functions.upgrade(request, socket, head))
      }
    })
  })
).pipe(Layer.provide([AppServer.layer, CardImages.layer, FunctionDataPlane.layer]))
