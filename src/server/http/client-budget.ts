/**
 * A budget in bytes that the requests of all clients share, with a deadline for each by its size. It keeps
 * itself: a metric shows its bytes, and a sweep every second cuts what is late.
 */
import { Clock, Effect, Schedule } from "effect"
import type { HttpServerRequest } from "effect/http"
import { http } from "#rpc/limits"
import { clientAddress } from "#server/platform/client-address"
import { readings } from "#server/platform/metrics"
import { monotonicMillis } from "#entities/monotonic"
import { Settings } from "#server/platform/settings/settings"
import { ByteBudget, type CutReason, type Holding } from "./byte-budget.ts"

const sweepMillis = 1000
const second = 1000

/** Opens a holding of a client for at most `bytes` bytes, and cuts it at the deadline. */
export type OpenHolding = (
  request: HttpServerRequest.HttpServerRequest,
  bytes: number,
  cut: (reason: CutReason) => void
) => Holding

/**
 * Makes a budget of `maxBytes`, and of two saves at least. `timeout` is in milliseconds, for no
 * bytes.
 */
export const makeClientBudget = Effect.fnUntraced(function* (options: {
  readonly metric: string
  readonly description: string
  readonly maxBytes: number
  readonly timeout: number
}) {
  const { saves, trustedProxies } = yield* Settings
  const now = monotonicMillis(yield* Clock.Clock)
  const { gauge } = yield* readings
  const budget = new ByteBudget(Math.max(options.maxBytes, 2 * saves.maxBytes))
  gauge(options.metric, options.description, () => budget.bytes)
  yield* Effect.sync(() => budget.sweep(now())).pipe(
    Effect.repeat(Schedule.spaced(sweepMillis)),
    Effect.forkScoped
  )
  const open: OpenHolding = (request, bytes, cut) => {
    const millis = options.timeout + (bytes / http.slowestBytesPerSecond) * second
    return budget.open(clientAddress(request, trustedProxies), now() + millis, cut)
  }
  return open
})
