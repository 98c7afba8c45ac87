/**
 * Preloaded into runners: answers on a socket of its own with what is alive in the process, after a full
 * garbage collection (needs --expose-gc).
 */
import { rmSync } from "node:fs"
import { createServer } from "node:net"
import { vitalsPath } from "./vitals.ts"

const path = vitalsPath(process.pid)
process.once("exit", () => rmSync(path, { force: true }))

createServer((socket) => {
  socket.on("error", () => socket.destroy())
  globalThis.gc?.()
  const { external, heapUsed, rss } = process.memoryUsage()
  // One of them is this question's own connection.
  const handles = process.getActiveResourcesInfo().length - 1
  socket.end(JSON.stringify({ alive: heapUsed + external, rss, handles }))
})
  .listen(path)
  .unref()
