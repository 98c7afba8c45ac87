/**
 * Preloaded into runners: serves the process's live memory and open handles on a Unix socket. Forces
 * full garbage collections before it measures, so it needs `--expose-gc`.
 */
import { rmSync } from "node:fs"
import { createServer } from "node:net"
import { setImmediate as nextLoop } from "node:timers/promises"
import { getHeapSpaceStatistics } from "node:v8"
import { statsPath } from "./process-stats.ts"

const path = statsPath(process.pid)
process.once("exit", () => rmSync(path, { force: true }))

const collectionsMax = 8
const stableBytes = 200_000

/** Compiled code. It grows for as long as the process runs, so it is no sign of a leak. */
const codeBytes = (): number =>
  getHeapSpaceStatistics()
    .filter(({ space_name: name }) => /code|trusted/.test(name))
    .reduce((sum, { space_used_size: bytes }) => sum + bytes, 0)

const dataBytes = (): number => {
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external - codeBytes()
}

/**
 * Collects until no more memory is released. One collection is not enough: finalizers and weak
 * references release memory for the next one, which measured as much as 20 MB.
 */
const collect = async (): Promise<number> => {
  let before = Number.POSITIVE_INFINITY
  let after = dataBytes()
  for (let i = 0; i < collectionsMax && before - after > stableBytes; i++) {
    before = after
    globalThis.gc?.()
    await nextLoop()
    after = dataBytes()
  }
  return after
}

createServer((socket) => {
  socket.on("error", () => socket.destroy())
  void collect().then((data) => {
    // The connection of this request is not counted.
    const handles = process.getActiveResourcesInfo().length - 1
    const { rss } = process.memoryUsage()
    socket.end(JSON.stringify({ data, code: codeBytes(), rss, handles }))
  })
})
  .listen(path)
  .unref()
