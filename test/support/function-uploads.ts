/** Uploads to functions over raw sockets, which show everything that the service answers. */
import { connect } from "node:net"

export interface Upload {
  readonly url: string
  readonly bytes: number
  /** Sends this much at most in a second. */
  readonly bytesPerSecond?: number
  /** Whether the connection closes after the response. */
  readonly closes?: boolean
}

/** Whether a response has come with its whole body. */
const isWhole = (answered: string): boolean => {
  const [head = "", body = ""] = answered.split("\r\n\r\n", 2)
  const [, length] = /^content-length: (\d+)/im.exec(head) ?? []
  return length === undefined ? answered.endsWith("\r\n0\r\n\r\n") : body.length >= Number(length)
}

const chunkBytes = 64 * 1024

/** Sends a body whatever comes back; returns the response. */
export const upload = ({ bytes, bytesPerSecond, closes = false, url }: Upload): Promise<string> => {
  const { hostname, pathname, port } = new URL(url)
  return new Promise((resolve) => {
    let answered = ""
    let left = bytes
    const socket = connect(Number(port), hostname)
    /** Whether more may follow at once. */
    const sendChunk = (): boolean => {
      const chunk = Buffer.alloc(Math.min(left, bytesPerSecond ?? chunkBytes), 65)
      left -= chunk.length
      return socket.write(chunk)
    }
    const send = (): void => {
      if (bytesPerSecond !== undefined) return
      while (!socket.destroyed && sendChunk()) if (left === 0) return
    }
    const second = setInterval(() => {
      if (bytesPerSecond !== undefined && left > 0) sendChunk()
    }, 1000)
    socket.on("data", (data) => {
      answered += String(data)
      if (!closes && isWhole(answered)) socket.destroy()
    })
    socket.on("error", () => undefined)
    socket.on("close", () => {
      clearInterval(second)
      resolve(answered)
    })
    socket.on("drain", send)
    const head = [
      `POST ${pathname} HTTP/1.1`,
      `host: ${hostname}:${port}`,
      `content-length: ${bytes}`,
      `connection: ${closes ? "close" : "keep-alive"}`
    ]
    socket.write(`${head.join("\r\n")}\r\n\r\n`)
    send()
  })
}
