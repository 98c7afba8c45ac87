/**
 * What is written to a socket: each frame is encoded once, whoever receives it, and everything a
 * socket gets in one turn of the event loop leaves in one write (a write is a system call, and system
 * calls are most of the cost of a delivery). Bounded: a consumer that reads too slowly is closed.
 */
import type { Duplex } from "node:stream"
import { socket as limits } from "#rpc/limits"

/** An event or reply as text, and as a WebSocket frame made the first time somebody needs it. */
export class Frame {
  readonly text: string
  #bytes: Buffer | undefined

  constructor(text: string) {
    this.text = text
  }

  static of(value: unknown): Frame {
    return new Frame(JSON.stringify(value))
  }

  get bytes(): Buffer {
    this.#bytes ??= encodeTextFrame(this.text)
    return this.#bytes
  }
}

const finalText = 0x81
const lengthIn16Bits = 126
const lengthIn64Bits = 127

/** One unmasked, unfragmented text frame (RFC 6455 section 5.2). */
const encodeTextFrame = (text: string): Buffer => {
  const size = Buffer.byteLength(text)
  const header = size < lengthIn16Bits ? 2 : size < 65_536 ? 4 : 10
  const bytes = Buffer.allocUnsafe(header + size)
  bytes[0] = finalText
  if (header === 2) {
    bytes[1] = size
  } else if (header === 4) {
    bytes[1] = lengthIn16Bits
    bytes.writeUInt16BE(size, 2)
  } else {
    bytes[1] = lengthIn64Bits
    bytes.writeBigUInt64BE(BigInt(size), 2)
  }
  bytes.write(text, header)
  return bytes
}

/** Sockets with something to write, written together at the end of the turn. */
export interface Turn {
  readonly outbox: (outbox: Outbox) => void
}

/**
 * A frame larger than this, such as the snapshot of a room at its limits, is let through once beside
 * what else may wait: nobody is too slow for what fits no outbox.
 */
const largeBytes = limits.outboxMaxBytes / 2

/** The frames one socket gets this turn. */
export class Outbox {
  readonly #socket: Duplex
  readonly #turn: Turn
  readonly #overflow: () => void
  #frames: Array<Buffer> = []
  #bytes = 0
  /** The size of the large frame that waits, if any. */
  #large = 0
  #closed = false

  constructor(socket: Duplex, turn: Turn, overflow: () => void) {
    this.#socket = socket
    this.#turn = turn
    this.#overflow = overflow
  }

  push(frame: Frame): void {
    if (this.#closed) return
    const bytes = frame.bytes
    const waiting = this.#bytes + this.#socket.writableLength
    if (waiting === 0) this.#large = 0
    if (bytes.length > largeBytes) this.#large = Math.max(this.#large, bytes.length)
    if (this.#frames.length === 0) this.#turn.outbox(this)
    this.#frames.push(bytes)
    this.#bytes += bytes.length
    if (waiting + bytes.length > limits.outboxMaxBytes + this.#large) {
      this.close()
      this.#overflow()
    }
  }

  /** Writes what is waiting in one go. */
  flush(): void {
    const frames = this.#frames
    if (frames.length === 0 || this.#closed) return
    this.#frames = []
    const size = this.#bytes
    this.#bytes = 0
    if (!this.#socket.writable) return
    const [first] = frames
    if (frames.length === 1 && first !== undefined) this.#socket.write(first)
    else this.#socket.write(Buffer.concat(frames, size))
  }

  /** Drops what waits and takes no more. */
  close(): void {
    this.#closed = true
    this.#frames = []
    this.#bytes = 0
  }
}
