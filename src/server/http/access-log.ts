/** What is noted of every request: how long its answer took, and a line in the log where that is wanted. */
import { Clock, Effect, Metric } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Settings } from "#server/platform/settings/settings"
import { routeOf } from "./routes.ts"

const nanosPerSecond = 1e9
const nanosPerMilli = 1e6

const name = "svc_http_request_duration_seconds"
const description = "How long answers to requests took, by route and class of status."
const boundaries = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** Methods that make a series of their own. */
const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])

/** One series for each method, route and class; paths that are no route share one. */
const makeSeries = () => {
  const series = new Map<string, Metric.Histogram<number>>()
  return (method: string, route: string, status: number): Metric.Histogram<number> => {
    const statusClass = `${Math.floor(status / 100)}xx`
    const key = `${method} ${route} ${statusClass}`
    const known = series.get(key)
    if (known !== undefined) return known
    const attributes = { method, route, status: statusClass }
    const made = Metric.histogram(name, { description, attributes, boundaries })
    series.set(key, made)
    return made
  }
}

export const makeAccessLog = Effect.gen(function* () {
  const { logs } = yield* Settings
  const seriesOf = makeSeries()
  /** Notes the answer to a request that came at `begun` (nanoseconds). */
  const note = (
    { method, url }: HttpServerRequest.HttpServerRequest,
    status: number,
    { begun, requestId }: { readonly begun: bigint; readonly requestId: string }
  ): Effect.Effect<void> =>
    Effect.withFiber((fiber) => {
      const nanos = Number(fiber.getRef(Clock.Clock).currentTimeNanosUnsafe() - begun)
      const route = routeOf(method, url) ?? "none"
      seriesOf(methods.has(method) ? method : "other", route, status).updateUnsafe(
        nanos / nanosPerSecond,
        fiber.context
      )
      // A node that is not ready has not failed: it says so.
      const failed = status >= 500 && route !== "/readyz"
      if (!failed && logs.requests === "failed") return Effect.void
      const millis = Math.round(nanos / nanosPerMilli)
      const log = failed ? Effect.logWarning("Answered") : Effect.logInfo("Answered")
      return Effect.annotateLogs(log, { requestId, method, route, status, millis })
    })
  return { note }
})
