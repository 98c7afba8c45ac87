/** One HTTP connection under load: the next request goes when the answer before it is there. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"

/** The bytes of a request with a JSON body, made before the clock runs. */
export function requestBytes(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string
): Buffer {
  const lines = Object.entries({
    host: "127.0.0.1",
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    ...headers
  }).map(([name, value]) => `${name}: ${value}`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`)
}

const headEnd = "\r\n\r\n"

export class Connection {
  readonly #socket: Socket
  #waiting: PromiseWithResolvers<string> | undefined
  #heard = ""

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.setEncoding("latin1")
    socket.on("data", (chunk: string) => this.#hear(chunk))
    socket.on("error", (error) => this.#waiting?.reject(error))
    socket.on("close", () => this.#waiting?.reject(new Error("the connection was closed")))
  }

  static async open(url: string): Promise<Connection> {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    await once(socket, "connect")
    return new Connection(socket)
  }

  /** The body of the answer; anything but 200 is an error. */
  exchange(request: Buffer): Promise<string> {
    this.#waiting = Promise.withResolvers<string>()
    this.#socket.write(request)
    return this.#waiting.promise
  }

  close(): void {
    this.#waiting = undefined
    this.#socket.destroy()
  }

  #hear(chunk: string): void {
    this.#heard += chunk
    const end = this.#heard.indexOf(headEnd)
    if (end === -1) return
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#heard.slice(0, end))?.[1]
    if (length === undefined) {
      this.#waiting?.reject(new Error(`an answer without a length: ${this.#heard}`))
      return
    }
    const bodyAt = end + headEnd.length
    if (this.#heard.length < bodyAt + Number(length)) return
    const body = this.#heard.slice(bodyAt)
    const isFine = this.#heard.startsWith("HTTP/1.1 200")
    this.#heard = ""
    if (isFine) this.#waiting?.resolve(body)
    else this.#waiting?.reject(new Error(`not 200: ${body}`))
  }
}
