/**
 * How the process itself does: memory, CPU, and above all the event loop, which everything waits for.
 * The usual names of Prometheus' own libraries where there are such.
 */
import { monitorEventLoopDelay, performance } from "node:perf_hooks"
import { Effect, Layer } from "effect"
import { readings } from "#server/platform/metrics"

const nanosPerSecond = 1e9
const microsPerSecond = 1e6
const millisPerSecond = 1000

/** The loop is looked at this often; what is measured includes it. */
const resolution = 10

const measureLoop = Effect.acquireRelease(
  Effect.sync(() => {
    const delay = monitorEventLoopDelay({ resolution })
    delay.enable()
    return delay
  }),
  (delay) => Effect.sync(() => delay.disable())
)

/** The delays since they were last read: `max` is read last and begins anew. */
const readLoop = Effect.gen(function* () {
  const { counter, gauge } = yield* readings
  const delay = yield* measureLoop
  const seconds = (nanos: number) =>
    Math.max(0, nanos / nanosPerSecond - resolution / millisPerSecond)
  const name = "svc_event_loop_delay_seconds"
  const help = "How late the event loop was since the last scrape."
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
    "Time in which the event loop had work; its rate is the use of the one thread.",
    () => performance.eventLoopUtilization().active / millisPerSecond
  )
})

/** Readings of the process. */
export const ProcessReadings = Layer.effectDiscard(
  Effect.gen(function* () {
    const { counter, gauge } = yield* readings
    yield* readLoop
    counter(
      "process_cpu_seconds_total",
      "Time that the process has spent on processors, user and system.",
      () => {
        const { system, user } = process.cpuUsage()
        return (system + user) / microsPerSecond
      }
    )
    gauge("process_resident_memory_bytes", "Memory that the process holds.", () =>
      process.memoryUsage.rss()
    )
    gauge("process_start_time_seconds", "When the process began, Unix time.", () =>
      Math.round(performance.timeOrigin / millisPerSecond)
    )
    gauge(
      "svc_heap_used_bytes",
      "Memory of JavaScript in use.",
      () => process.memoryUsage().heapUsed
    )
    gauge(
      "svc_heap_total_bytes",
      "Memory of JavaScript, reserved.",
      () => process.memoryUsage().heapTotal
    )
    gauge(
      "svc_external_memory_bytes",
      "Memory outside the heap that objects hold, such as buffers.",
      () => process.memoryUsage().external
    )
  })
)
