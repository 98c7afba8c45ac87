/**
 * A WebSocket client that is light enough for one core to hold up 67,000 deliveries a second: reads
 * land in one buffer per socket, frames are visited in place, and only frames that are not
 * deliveries become strings.
 */
import { randomBytes } from "node:crypto"
import * as net from "node:net"
import { encodeFrame, opcodes, readFrames } from "./frames.ts"
import { deliveryTime } from "./message.ts"

const readBufferBytes = 16 * 1024
const maxFrameBytes = 1024 * 1024
const answerTimeoutMs = 10_000

/** Events of a socket that the load generator handles. */
export interface SocketEvents {
  readonly onDelivery: (ts: number) => void
  /** Any close that this side did not ask for. */
  readonly onLost: (error: Error) => void
}

/** What a protocol needs beyond JSON over WebSocket. */
export interface SocketProtocol {
  /** The `ts` of a delivered message, or -1 when the frame is something else. */
  readonly deliveryTime?: typeof deliveryTime
  /** A line of the upgrade request, for instance of a proxy's. */
  readonly header?: string
  /** The server speaks first: true once this is the frame that it opens with. */
  readonly greeting?: (text: string) => boolean
  /** The address of this machine that the socket comes from. */
  readonly localAddress?: string
  /** What to say at once to a frame that is no delivery: to a ping, for instance. */
  readonly answer?: (text: string) => string | undefined
}

interface Waiter {
  readonly pick: (text: string) => boolean
  readonly reject: (error: Error) => void
}

export class LoadSocket {
  readonly #socket: net.Socket
  readonly #events: SocketEvents
  readonly #protocol: SocketProtocol
  readonly #deliveryTime: typeof deliveryTime
  readonly #url: URL
  #upgraded = false
  #closing = false
  /** Why the connection is lost. */
  #cause = new Error("closed by this side")
  #rest: Buffer | undefined
  #waiter: Waiter | undefined

  private constructor(url: URL, events: SocketEvents, protocol: SocketProtocol) {
    this.#url = url
    this.#events = events
    this.#protocol = protocol
    this.#deliveryTime = protocol.deliveryTime ?? deliveryTime
    const buffer = Buffer.allocUnsafe(readBufferBytes)
    this.#socket = net.connect({
      host: url.hostname,
      port: Number(url.port),
      ...(protocol.localAddress === undefined ? {} : { localAddress: protocol.localAddress }),
      noDelay: true,
      onread: {
        buffer,
        callback: (length) => {
          this.#read(buffer.subarray(0, length))
          return true
        }
      }
    })
    this.#socket.on("error", (error) => this.#lost(error))
    this.#socket.on("close", () => this.#lost(new Error("connection closed")))
  }

  /** Connects and upgrades; fails when the server answers anything but 101. */
  static async connect(
    url: string,
    events: SocketEvents,
    protocol: SocketProtocol = {}
  ): Promise<LoadSocket> {
    const target = new URL(url)
    const socket = new LoadSocket(target, events, protocol)
    const key = randomBytes(16).toString("base64")
    const request =
      `GET ${target.pathname}${target.search} HTTP/1.1\r\nHost: ${target.host}\r\nUpgrade: websocket\r\n` +
      `Connection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n` +
      (protocol.header === undefined ? "\r\n" : `${protocol.header}\r\n\r\n`)
    let accepted = false
    await socket.#ask("the upgrade", Buffer.from(request), (text) => {
      if (accepted) return protocol.greeting?.(text) === true
      if (!text.startsWith("HTTP/1.1 101 ")) {
        throw new Error(`upgrade refused: ${text.split("\r\n")[0]}`)
      }
      accepted = true
      return protocol.greeting === undefined
    })
    return socket
  }

  /** Writes a frame that was built by `encodeFrame`. */
  write(frame: Buffer): void {
    this.#socket.write(frame)
  }

  /** Stops reading; what the server sends waits in the systems' buffers, then at the server. */
  pause(): void {
    this.#socket.pause()
  }

  /** Reads again. */
  resume(): void {
    this.#socket.resume()
  }

  /** Sends `frame` as JSON and waits for the first text for which `pick` returns a value. */
  request<A>(frame: object, pick: (text: string) => A | undefined): Promise<A> {
    return this.ask(JSON.stringify(frame), pick)
  }

  /** The same with a text of any kind. */
  async ask<A>(question: string, pick: (text: string) => A | undefined): Promise<A> {
    let answer: A | undefined
    const frame = this.#masked(opcodes.text, Buffer.from(question))
    await this.#ask("an answer", frame, (text) => {
      answer = pick(text)
      return answer !== undefined
    })
    if (answer === undefined) throw new Error("no answer")
    return answer
  }

  close(): void {
    this.#closing = true
    this.#socket.end(this.#masked(opcodes.close, Buffer.alloc(0)))
    this.#socket.destroySoon()
  }

  #masked(opcode: number, payload: Uint8Array): Buffer {
    return encodeFrame(opcode, payload, randomBytes(4))
  }

  #ask(what: string, bytes: Buffer, pick: (text: string) => boolean): Promise<void> {
    if (this.#closing) return Promise.reject(this.#cause)
    return new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => this.#lost(new Error(`${what} did not come within ${answerTimeoutMs} ms`)),
        answerTimeoutMs
      )
      this.#waiter = {
        pick: (text) => {
          const done = pick(text)
          if (done) {
            clearTimeout(timer)
            resolve()
          }
          return done
        },
        reject: (error) => {
          clearTimeout(timer)
          reject(error)
        }
      }
      this.#socket.write(bytes)
    })
  }

  #read(chunk: Buffer): void {
    try {
      let bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
      this.#rest = undefined
      if (!this.#upgraded) {
        const end = bytes.indexOf("\r\n\r\n")
        if (end >= 0) {
          this.#upgraded = true
          this.#text(bytes.toString("latin1", 0, end))
          bytes = bytes.subarray(end + 4)
        }
      }
      const used = this.#upgraded
        ? readFrames(bytes, (opcode, start, end) => this.#frame(bytes, opcode, start, end))
        : 0
      if (bytes.length - used > maxFrameBytes) throw new Error("frame over 1 MiB")
      // A copy: `chunk` is the read buffer, which the next read overwrites.
      if (used < bytes.length) this.#rest = Buffer.from(bytes.subarray(used))
    } catch (error) {
      this.#lost(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #frame(bytes: Buffer, opcode: number, start: number, end: number): void {
    if (opcode === opcodes.text || opcode === opcodes.binary) {
      const ts = this.#deliveryTime(bytes, start, end)
      if (ts >= 0) this.#events.onDelivery(ts)
      else this.#text(bytes.toString("utf8", start, end))
    } else if (opcode === opcodes.ping) {
      this.#socket.write(this.#masked(opcodes.pong, bytes.subarray(start, end)))
    } else if (opcode === opcodes.close) {
      const code = end - start >= 2 ? bytes.readUInt16BE(start) : 1005
      this.#lost(new Error(`closed with ${code} ${bytes.toString("utf8", start + 2, end)}`))
    }
  }

  /** Frames nobody waits for (others joining, for instance) are dropped. */
  #text(text: string): void {
    const answer = this.#protocol.answer?.(text)
    if (answer !== undefined) this.#socket.write(this.#masked(opcodes.text, Buffer.from(answer)))
    if (this.#waiter?.pick(text) === true) this.#waiter = undefined
  }

  #lost(cause: Error): void {
    if (this.#closing) return
    this.#closing = true
    this.#socket.destroy()
    this.#cause = new Error(`${this.#url.href}: ${cause.message}`, { cause })
    if (this.#waiter === undefined) this.#events.onLost(this.#cause)
    else this.#waiter.reject(this.#cause)
    this.#waiter = undefined
  }
}
