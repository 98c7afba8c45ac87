/**
 * Process metrics: memory, CPU, and the delay of the event loop. Uses the names of Prometheus' client
 * libraries where they exist.
 */
import { monitorEventLoopDelay, performance } from "node:perf_hooks"
import { Effect, Layer } from "effect"
import { readings } from "#server/platform/metrics"

const nanosPerSecond = 1e9
const microsPerSecond = 1e6
const millisPerSecond = 1000

/** Sampling interval in milliseconds; measured delays include it. */
const resolution = 10

const measureLoop = Effect.acquireRelease(
  Effect.sync(() => {
    const delay = monitorEventLoopDelay({ resolution })
    delay.enable()
    return delay
  }),
  (delay) => Effect.sync(() => delay.disable())
)

/**
 * Reads the delays since the last scrape: reading `max`, the last of them, resets the histogram.
 */
const readLoop = Effect.gen(function* () {
  const { counter, gauge } = yield* readings
  const delay = yield* measureLoop
  const seconds = (nanos: number) =>
    Math.max(0, nanos / nanosPerSecond - resolution / millisPerSecond)
  const name = "svc_event_loop_delay_seconds"
  const help = "Delay of the event loop since the last scrape."
  gauge(name, help, () => seconds(delay.percentile(50)), { quantile: "0.5" })
  gauge(name, help, () => seconds(delay.percentile(99)), { quantile: "0.99" })
  const readMax = () => {
    const { max } = delay
    delay.reset()
    return seconds(max)
  }
  gauge(name, help, readMax, { quantile: "1" })
  counter(
    "svc_event_loop_active_seconds_total",
    "Time the event loop was busy; its rate is the utilization of the thread.",
    () => performance.eventLoopUtilization().active / millisPerSecond
  )
})

/** Registers the metrics of the process. */
export const ProcessReadings = Layer.effectDiscard(
  Effect.gen(function* () {
    const { counter, gauge } = yield* readings
    yield* readLoop
    counter("process_cpu_seconds_total", "CPU time of the process, user and system.", () => {
      const { system, user } = process.cpuUsage()
      return (system + user) / microsPerSecond
    })
    gauge("process_resident_memory_bytes", "Resident memory of the process.", () =>
      process.memoryUsage.rss()
    )
    gauge("process_start_time_seconds", "Start time of the process, Unix time.", () =>
      Math.round(performance.timeOrigin / millisPerSecond)
    )
    gauge("svc_heap_used_bytes", "Used JavaScript heap.", () => process.memoryUsage().heapUsed)
    gauge(
      "svc_heap_total_bytes",
      "Reserved JavaScript heap.",
      () => process.memoryUsage().heapTotal
    )
    gauge(
      "svc_external_memory_bytes",
      "Memory outside the heap that is bound to JavaScript objects, such as buffers.",
      () => process.memoryUsage().external
    )
  })
)
