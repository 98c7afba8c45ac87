/**
 * What is written to a socket: each frame is encoded once, whoever receives it, and everything a
 * socket gets in one turn of the event loop leaves in one write (a write is a system call, and system
 * calls are most of the cost of a delivery). Bounded: a consumer that reads too slowly is closed.
 */
import type { Duplex } from "node:stream"
import { socket as limits } from "#rpc/limits"

/** What goes to a socket as it is. */
export interface Sendable {
  readonly bytes: Buffer
}

/** A ping without a payload (RFC 6455 section 5.5.2). */
export const pingFrame: Sendable = { bytes: Buffer.of(0x89, 0) }

/** An event or reply as text, and as a WebSocket frame made the first time somebody needs it. */
export class Frame implements Sendable {
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

/** What has been written to sockets, in numbers that only grow. */
export class WriteStats {
  messages = 0
  bytes = 0
  writes = 0
}

/** Sockets with something to write, written together at the end of the turn. */
export interface Turn {
  readonly writeStats: WriteStats
  readonly scheduleOutbox: (outbox: Outbox) => void
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
  /** What is written at the end of the turn; most often it is one frame. */
  #first: Buffer | undefined
  /** Emptied and used again: the engine soon takes arrays made anew each turn for long-lived ones. */
  readonly #more: Array<Buffer> = []
  #bytes = 0
  /** The socket had more than it could send when it was last written to. */
  #behind = false
  /** The size of the large frame that waits, if any. */
  #large = 0
  #closed = false

  constructor(socket: Duplex, turn: Turn, overflow: () => void) {
    this.#socket = socket
    this.#turn = turn
    this.#overflow = overflow
  }

  push(frame: Sendable): void {
    if (this.#closed) return
    const bytes = frame.bytes
    const waiting = this.#bytes + (this.#behind ? this.#socket.writableLength : 0)
    if (waiting === 0) {
      this.#behind = false
      this.#large = 0
    }
    if (bytes.length > largeBytes) this.#large = Math.max(this.#large, bytes.length)
    if (this.#first === undefined) {
      this.#first = bytes
      this.#turn.scheduleOutbox(this)
    } else {
      this.#more.push(bytes)
    }
    this.#bytes += bytes.length
    if (waiting + bytes.length > limits.outboxMaxBytes + this.#large) {
      this.close()
      this.#overflow()
    }
  }

  /** Writes what is waiting in one go. */
  flush(): void {
    const first = this.#first
    if (first === undefined) return
    const messages = 1 + this.#more.length
    const bytes = messages === 1 ? first : this.#joined(first)
    this.#empty()
    if (!this.#socket.writable) return
    const { writeStats } = this.#turn
    writeStats.messages += messages
    writeStats.bytes += bytes.length
    writeStats.writes += 1
    if (!this.#socket.write(bytes)) this.#behind = true
  }

  /** Drops what waits and takes no more. */
  close(): void {
    this.#closed = true
    this.#empty()
  }

  #joined(first: Buffer): Buffer {
    const joined = Buffer.allocUnsafe(this.#bytes)
    let size = first.copy(joined)
    for (const bytes of this.#more) size += bytes.copy(joined, size)
    return joined
  }

  #empty(): void {
    this.#first = undefined
    this.#more.length = 0
    this.#bytes = 0
  }
}
