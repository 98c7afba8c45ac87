/**
 * Preloaded into servers: answers on a socket of its own with the process's memory in bytes, after a
 * full garbage collection when asked for "gc" (needs --expose-gc).
 */
import { rmSync } from "node:fs"
import { createServer } from "node:net"
import { reporterPath } from "./memory.ts"

const path = reporterPath(process.pid)
process.once("exit", () => rmSync(path, { force: true }))

createServer((socket) => {
  socket.once("data", (question) => {
    if (question.toString() === "gc") globalThis.gc?.()
    socket.end(JSON.stringify(process.memoryUsage()))
  })
  socket.on("error", () => socket.destroy())
})
  .listen(path)
  .unref()
