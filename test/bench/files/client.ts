/** An HTTP client that counts bytes and keeps none, so that it costs less than the servers. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"

const headEnd = Buffer.from("\r\n\r\n")

export interface Answer {
  readonly status: number
  readonly bytes: number
  readonly etag: string
}

export class FileConnection {
  readonly #socket: Socket
  #waiting: PromiseWithResolvers<Answer> | undefined
  #head: Buffer = Buffer.alloc(0)
  #missing = 0
  #answer: Answer | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on("data", (chunk) => this.#receive(chunk))
    socket.on("error", (error) => this.#waiting?.reject(error))
    socket.on("close", () => this.#waiting?.reject(new Error("the connection was closed")))
  }

  static async open(port: number): Promise<FileConnection> {
    const socket = connect(port, "127.0.0.1")
    await once(socket, "connect")
    return new FileConnection(socket)
  }

  /** Sends a request and waits until the last byte of the response. */
  exchange(request: Buffer): Promise<Answer> {
    this.#waiting = Promise.withResolvers<Answer>()
    this.#socket.write(request)
    return this.#waiting.promise
  }

  /** Sends a request, and reads nothing of the response. */
  ignore(request: Buffer): void {
    this.#socket.pause()
    this.#socket.write(request)
  }

  close(): void {
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    if (this.#answer === undefined) {
      this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk])
      const end = this.#head.indexOf(headEnd)
      if (end < 0) return
      const head = this.#head.toString("latin1", 0, end)
      const bytes = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
      const status = Number(head.slice(9, 12))
      this.#answer = { status, bytes, etag: /^etag: (.+?)\r?$/im.exec(head)?.[1] ?? "" }
      this.#missing = bytes - (this.#head.length - end - headEnd.length)
      this.#head = Buffer.alloc(0)
    } else {
      this.#missing -= chunk.length
    }
    if (this.#missing > 0) return
    const answer = this.#answer
    this.#answer = undefined
    this.#waiting?.resolve(answer)
  }
}

/** The bytes of a `GET` request. */
export const requestOf = (
  host: string,
  path: string,
  headers: Readonly<Record<string, string>> = {}
): Buffer => {
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}`)
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`)
}
