/**
 * Preloaded into runners: answers on a socket of its own with what is alive in the process, after a full
 * garbage collection (needs --expose-gc).
 */
import { rmSync } from "node:fs"
import { createServer } from "node:net"
import { getHeapSpaceStatistics } from "node:v8"
import { vitalsPath } from "./vitals.ts"

const path = vitalsPath(process.pid)
process.once("exit", () => rmSync(path, { force: true }))

/** What the engine has compiled; it goes on compiling for as long as it runs. */
const codeBytes = (): number =>
  getHeapSpaceStatistics()
    .filter(({ space_name: name }) => /code|trusted/.test(name))
    .reduce((sum, { space_used_size: bytes }) => sum + bytes, 0)

createServer((socket) => {
  socket.on("error", () => socket.destroy())
  globalThis.gc?.()
  const { external, heapUsed, rss } = process.memoryUsage()
  const code = codeBytes()
  // One of them is this question's own connection.
  const handles = process.getActiveResourcesInfo().length - 1
  socket.end(JSON.stringify({ data: heapUsed + external - code, code, rss, handles }))
})
  .listen(path)
  .unref()
