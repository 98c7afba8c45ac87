/**
 * Preloaded into servers: answers on a socket of its own how late their event loop has been since the last
 * question, and what garbage collection took.
 */
import { rmSync } from "node:fs"
import { createServer } from "node:net"
import { PerformanceObserver } from "node:perf_hooks"
import { isMainThread } from "node:worker_threads"
import { Lateness } from "./lateness.ts"
import { loopPath } from "./loop.ts"

const majorKind = 4

if (isMainThread) {
  const loop = new Lateness()
  let gcMillis = 0
  let majors = 0
  new PerformanceObserver((entries) => {
    for (const entry of entries.getEntriesByType("gc")) {
      gcMillis += entry.duration
      if (Reflect.get(Object(Reflect.get(entry, "detail")), "kind") === majorKind) majors += 1
    }
  }).observe({ entryTypes: ["gc"] })

  const path = loopPath(process.pid)
  process.once("exit", () => rmSync(path, { force: true }))
  createServer((socket) => {
    socket.on("error", () => socket.destroy())
    socket.end(JSON.stringify({ ...loop.take(), gcMillis, majors }))
    gcMillis = 0
    majors = 0
  })
    .listen(path)
    .unref()
}
