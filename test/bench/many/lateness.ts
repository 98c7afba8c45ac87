/** How late the event loop of this thread is for what comes at any time, not only after it was idle. */
import { createHistogram } from "node:perf_hooks"

const stepMillis = 10
const micros = 1000

/** In milliseconds. */
export interface LoopFigures {
  /** How late the loop was. */
  readonly p99: number
  readonly max: number
  /** The most CPU time of this thread in one turn: what other programs take does not count. */
  readonly turn: number
}

export class Lateness {
  readonly #histogram = createHistogram()
  #turnMicros = 0

  constructor() {
    let due = performance.now() + stepMillis
    let cpu = process.threadCpuUsage()
    setInterval(() => {
      const now = performance.now()
      const used = process.threadCpuUsage(cpu)
      cpu = process.threadCpuUsage()
      // Whatever had come during one long turn would have waited for the rest of it.
      for (let late = now - due; late > 0; late -= stepMillis) {
        this.#histogram.record(Math.max(1, Math.round(late * micros)))
      }
      this.#turnMicros = Math.max(this.#turnMicros, used.user + used.system)
      due = now + stepMillis
    }, stepMillis).unref()
  }

  /** Since this was asked before. */
  take(): LoopFigures {
    const histogram = this.#histogram
    const figures = {
      p99: histogram.percentile(99) / micros,
      max: histogram.max / micros,
      turn: this.#turnMicros / micros
    }
    histogram.reset()
    this.#turnMicros = 0
    return figures
  }
}
