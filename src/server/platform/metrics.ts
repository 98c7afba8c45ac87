/**
 * Registers metrics that are read on each scrape of `GET /metrics`. Modules below the HTTP layer
 * register their own values here; `telemetry/metrics.ts` renders all of them.
 */
import { Effect, Metric } from "effect"
import { constVoid } from "effect/Function"

type Labels = Readonly<Record<string, string>>

/** Registers values that are read on each scrape. */
export const readings = Effect.map(Effect.context<never>(), (context) => ({
  gauge: (name: string, description: string, read: () => number, attributes: Labels = {}) => {
    const hooks = { get: () => ({ value: read() }), update: constVoid, modify: constVoid }
    Metric.registerUnsafe(Metric.gauge(name, { description, attributes }), context, hooks)
  },
  /** Registers a counter. `read` must be monotonic. */
  counter: (name: string, description: string, read: () => number, attributes: Labels = {}) => {
    const get = () => ({ count: read(), incremental: true })
    const hooks = { get, update: constVoid, modify: constVoid }
    Metric.registerUnsafe(Metric.counter(name, { description, attributes }), context, hooks)
  }
}))
