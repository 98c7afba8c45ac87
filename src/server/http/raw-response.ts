/**
 * An answer where there is no request that the router could answer: bytes that are no HTTP, a request
 * that took too long, a WebSocket that finds no place. It has the one form of errors (spec section 7),
 * and the connection ends with it, whether the other side closes its half or not.
 */
import { STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"

/** How long the other side has to read the answer and to close. */
const lingerMillis = 2000

/** Lets go of a connection on which nothing more is said, whether the other side closes its half or not. */
export const closeWithLinger = (stream: Duplex): void => {
  const cut = setTimeout(() => stream.destroy(), lingerMillis)
  stream.once("close", () => clearTimeout(cut))
}

/** Answers, and lets go of the connection. */
export const refuse = (stream: Duplex, status: number, code: string, message: string): void => {
  const body = JSON.stringify({ error: { code, message } })
  // Whoever is refused may be gone already.
  stream.on("error", () => undefined)
  closeWithLinger(stream)
  stream.resume()
  stream.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
      `Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}
