/** Access log: records the duration of every request, and logs failed requests, or all of them. */
import { Clock, Effect, Metric } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Settings } from "#server/platform/settings/settings"
import { routeOf } from "./routes.ts"

const nanosPerSecond = 1e9
const nanosPerMilli = 1e6

const name = "svc_http_request_duration_seconds"
const description = "Duration of requests, by route and status class."
const boundaries = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** Methods with their own time series. */
const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])

/** One time series for each method, route and status class; unknown paths share one. */
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
  /** Records the response to a request that arrived at `startedAt` (nanoseconds). */
  const record = (
    { method, url }: HttpServerRequest.HttpServerRequest,
    status: number,
    { startedAt, requestId }: { readonly startedAt: bigint; readonly requestId: string }
  ): Effect.Effect<void> =>
    Effect.withFiber((fiber) => {
      const nanos = Number(fiber.getRef(Clock.Clock).currentTimeNanosUnsafe() - startedAt)
      const route = routeOf(method, url) ?? "none"
      seriesOf(methods.has(method) ? method : "other", route, status).updateUnsafe(
        nanos / nanosPerSecond,
        fiber.context
      )
      // 503 from /readyz is a valid response, not a failure.
      const failed = status >= 500 && route !== "/readyz"
      if (!failed && logs.requests === "failed") return Effect.void
      const millis = Math.round(nanos / nanosPerMilli)
      const log = (failed ? Effect.logWarning : Effect.logInfo)("Handled a request")
      return Effect.annotateLogs(log, { requestId, method, route, status, millis })
    })
  return { record }
})
