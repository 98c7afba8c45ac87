/** Prints how late the event loop of this process is. Loaded into runners by benchmarks, with `--import`. */
import { isMainThread } from "node:worker_threads"

const checkMillis = 50
const reportMillis = 250

if (isMainThread) {
  let before = performance.now()
  setInterval(() => {
    const now = performance.now()
    const late = now - before - checkMillis
    before = now
    if (late > reportMillis) process.stderr.write(`loop ${late.toFixed()} ms late\n`)
  }, checkMillis).unref()
}
