/**
 * Responses written to the socket directly, for what never reaches the router: invalid HTTP, a request
 * that timed out, a WebSocket on a full node. They have the usual error format, and close the connection.
 */
import { STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { closeWithLinger } from "#server/platform/cut-connection"

/** Sends an error response and closes the connection. */
export const refuse = (stream: Duplex, status: number, code: string, message: string): void => {
  const body = JSON.stringify({ error: { code, message } })
  // The client may have disconnected already.
  stream.on("error", () => undefined)
  closeWithLinger(stream)
  stream.resume()
  stream.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
      `Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}
