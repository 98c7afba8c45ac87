/** Raw connection of an HTTP client: it sends any bytes and reads the responses one by one. */
import { connect, type Socket } from "node:net"

/** A response, or as much of it as arrived before the connection ended. */
export interface WireResponse {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
  /** Whether the whole response has arrived. */
  readonly isWhole: boolean
}

interface Head {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  /** Offset of the body. */
  readonly end: number
}

const headOf = (text: string): Head | undefined => {
  const end = text.indexOf("\r\n\r\n")
  if (end < 0) return undefined
  const [first = "", ...lines] = text.slice(0, end).split("\r\n")
  const headers = lines.map((line) => {
    const colon = line.indexOf(":")
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
  })
  const [, status = "0"] = /^HTTP\/1\.[01] (\d{3})/.exec(first) ?? []
  return { status: Number(status), headers: new Map(headers), end: end + 4 }
}

interface Body {
  readonly text: string
  /** Offset behind the body; undefined if it is incomplete. */
  readonly end: number | undefined
}

const chunkedBody = (text: string, start: number): Body => {
  let body = ""
  let at = start
  for (;;) {
    const line = text.indexOf("\r\n", at)
    if (line < 0) return { text: body, end: undefined }
    const size = Number.parseInt(text.slice(at, line), 16)
    const end = line + 2 + size
    body += text.slice(line + 2, end)
    if (text.length < end + 2 || Number.isNaN(size)) return { text: body, end: undefined }
    at = end + 2
    if (size === 0) return { text: body, end: at }
  }
}

/** Statuses of responses without a body (RFC 9110 section 6.4.1). */
const isBare = (status: number, isHead: boolean): boolean =>
  isHead || status === 204 || status === 304 || status === 101

const bodyOf = (text: string, { end: start, headers, status }: Head, isHead: boolean): Body => {
  if (isBare(status, isHead)) return { text: "", end: start }
  if (headers.get("transfer-encoding") === "chunked") return chunkedBody(text, start)
  const length = headers.get("content-length")
  // The end of the connection ends the body.
  if (length === undefined) return { text: text.slice(start), end: undefined }
  const end = start + Number(length)
  return { text: text.slice(start, end), end: text.length < end ? undefined : end }
}

/**
 * Returns the final responses in what a client has received. The methods are those of its requests, in
 * order.
 */
export const responsesIn = (
  received: string,
  methods: ReadonlyArray<string>
): ReadonlyArray<WireResponse> => {
  const responses: Array<WireResponse> = []
  let text = received
  while (text !== "") {
    const head = headOf(text)
    if (head === undefined) break
    const { headers, status } = head
    if (status < 200 && status !== 101) {
      text = text.slice(head.end)
      continue
    }
    const body = bodyOf(text, head, methods[responses.length] === "HEAD")
    responses.push({ status, headers, body: body.text, isWhole: body.end !== undefined })
    if (body.end === undefined) break
    text = text.slice(body.end)
  }
  return responses
}

export class Wire {
  readonly socket: Socket
  received = ""
  /** Resolves when the connection has ended in both directions. */
  readonly closed: Promise<void>
  #changed: () => void = () => undefined

  constructor(url: string) {
    const { hostname, port } = new URL(url)
    this.socket = connect({ port: Number(port), host: hostname, noDelay: true })
    this.socket.on("data", (chunk: Buffer) => {
      this.received += chunk.toString("latin1")
      this.#changed()
    })
    this.socket.on("error", () => undefined)
    this.closed = new Promise((resolve) => {
      this.socket.once("close", () => {
        this.#changed()
        resolve()
      })
    })
  }

  send(bytes: string): void {
    if (this.socket.writable) this.socket.write(bytes, "latin1")
  }

  /** Waits until the condition holds or the connection ends; false after the time. */
  async until(condition: () => boolean, millis: number): Promise<boolean> {
    const found = new Promise<true>((resolve) => {
      this.#changed = () => {
        if (condition() || this.socket.destroyed) resolve(true)
      }
      this.#changed()
    })
    return within(found, millis)
  }

  /** Half-closes the connection and waits for its end; false after the time. */
  async end(millis: number): Promise<boolean> {
    this.socket.end()
    return within(
      this.closed.then(() => true as const),
      millis
    )
  }
}

/** Whether the work ends within the time. */
const within = async (work: Promise<true>, millis: number): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(() => resolve(false), millis)
  const outcome = await Promise.race([work, promise])
  clearTimeout(timer)
  return outcome
}
