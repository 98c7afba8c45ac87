/**
 * A server whose requests fail in ways that nobody handles, as their path says. It prints its port, and what
 * its watch of errors reports. `test/http/unhandled-errors.test.ts` starts it as a process of its own.
 */
import { AssertionError } from "node:assert"
import { EventEmitter } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { courseOf } from "#server/http/unhandled-errors"
import { inCourse, watchErrors } from "#server/platform/request-errors"

const print = (line: object): void => {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

const fail = (path: string): void => {
  const error = new Error(path)
  if (path === "/throw") throw error
  if (path === "/timer") setTimeout(() => void fail("/throw"), 1)
  if (path === "/tick") process.nextTick(() => fail("/throw"))
  if (path === "/emitter") new EventEmitter().emit("error", error)
  if (path === "/promise") void Promise.reject(error)
  if (path === "/assertion") throw new AssertionError({ message: path })
}

watchErrors({
  onRequestError: (error, { requestId }) => print({ error: String(error), requestId }),
  onFatal: (error) => print({ fatal: String(error) })
})

const server = createServer((request, response) => {
  const { url = "" } = request
  if (url === "/fine") response.end("fine")
  else if (url === "/outside") setTimeout(() => fail("/throw"), 1)
  else inCourse(courseOf(request, response), () => fail(url))
})
server.on("error", (error) => print({ fatal: String(error) }))
server.listen(0, "127.0.0.1", () => print({ port: (server.address() as AddressInfo).port }))
