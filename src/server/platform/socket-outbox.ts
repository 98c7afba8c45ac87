/**
 * Output of a socket. It encodes a frame once for all its receivers, and all output of one flush
 * leaves in one write. A write is a system call, and most of what a delivery costs. The output is
 * bounded: the node closes a consumer that reads too slowly.
 */
import type { Duplex } from "node:stream"
import { outboxMaxBytes } from "#rpc/client-limits"
import type { FlushScheduler } from "./flush.ts"
import type { Backlog, OutboxBudget } from "./outbox-budget.ts"
import { socketLimits } from "./socket-limits.ts"

/** Bytes for a socket, ready to be written. */
export interface Sendable {
  readonly bytes: Buffer
}

/** A ping without a payload (RFC 6455 section 5.5.2). */
export const pingFrame: Sendable = { bytes: Buffer.of(0x89, 0) }

/** An event or reply as text; encodes itself as a WebSocket frame on first use. */
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

/** Monotonic counters of writes to sockets. */
export class WriteStats {
  messages = 0
  bytes = 0
  writes = 0
}

/**
 * Size above which a frame, such as the snapshot of a room at its limits, may exceed the bound
 * once. No consumer could read fast enough for a frame that fits no outbox.
 */
const largeBytes = outboxMaxBytes / 2

/** Decides how many bytes may wait for one consumer. */
export class OutboxBound {
  /** The size of the large frame that waits; 0 if none does. */
  #large = 0

  /** Whether a frame of that many bytes fits behind those that wait. */
  fits(waiting: number, bytes: number): boolean {
    if (waiting === 0) this.#large = 0
    if (bytes > largeBytes) this.#large = Math.max(this.#large, bytes)
    return waiting + bytes <= outboxMaxBytes + this.#large
  }
}

/** The socket of an outbox. */
export interface OutboxOwner {
  readonly environmentId: string
  readonly isClosed: boolean
  /** Closes the socket, since more waits than is allowed. */
  readonly closeSlow: () => void
  /** Cuts the connection. */
  readonly cut: () => void
}

/** The frames of one socket until the next flush. */
export class Outbox implements Backlog {
  readonly #socket: Duplex
  readonly #scheduler: Pick<FlushScheduler, "scheduleOutput">
  readonly #stats: WriteStats
  readonly #budget: OutboxBudget
  readonly #owner: OutboxOwner
  /** The first frame of the next write; most often the only one. */
  #first: Buffer | undefined
  /**
   * Buffer list that each flush empties and reuses: V8 soon treats an array allocated for each
   * flush as long-lived.
   */
  readonly #more: Array<Buffer> = []
  #bytes = 0
  /** Whether the last write filled the socket's buffer. */
  #behind = false
  readonly #bound = new OutboxBound()
  /** Writes that wait behind another one. */
  #queued = 0
  #onWritten: (() => void) | undefined
  /** The budget counts bytes of this socket. */
  #counted = false
  #closed = false

  constructor(options: {
    readonly socket: Duplex
    readonly scheduler: Pick<FlushScheduler, "scheduleOutput">
    readonly stats: WriteStats
    readonly budget: OutboxBudget
    readonly owner: OutboxOwner
  }) {
    this.#socket = options.socket
    this.#scheduler = options.scheduler
    this.#stats = options.stats
    this.#budget = options.budget
    this.#owner = options.owner
  }

  get environmentId(): string {
    return this.#owner.environmentId
  }

  /** Bytes that the operating system has not taken, with what each write takes besides. */
  get waitingBytes(): number {
    return this.#socket.writableLength + this.#queued * socketLimits.queuedWriteBytes
  }

  get isClosing(): boolean {
    return this.#closed
  }

  push(frame: Sendable): void {
    if (this.#closed) return
    const bytes = frame.bytes
    const waiting = this.#bytes + (this.#behind ? this.#socket.writableLength : 0)
    if (waiting === 0) this.#behind = false
    if (this.#first === undefined) {
      this.#first = bytes
      this.#scheduler.scheduleOutput(this)
    } else {
      this.#more.push(bytes)
    }
    this.#bytes += bytes.length
    if (!this.#bound.fits(waiting, bytes.length)) {
      this.closeSlow()
    }
  }

  /** Writes everything that waits, in one write. */
  flush(): void {
    const first = this.#first
    if (first === undefined) return
    const messages = 1 + this.#more.length
    const bytes = messages === 1 ? first : this.#joined(first)
    this.#empty()
    if (!this.#socket.writable) return
    this.#stats.messages += messages
    this.#stats.bytes += bytes.length
    this.#stats.writes += 1
    if (!this.#write(bytes)) this.#behind = true
    const isUnread = this.#socket.writableLength > 0
    if (isUnread || this.#counted) this.#budget.count(this)
    this.#counted = isUnread
  }

  /** Closes the socket, since its client reads too slowly. */
  closeSlow(): void {
    this.close()
    this.#owner.closeSlow()
  }

  cut(): void {
    this.#owner.cut()
  }

  /** Releases the backlog of a connection that has ended. */
  release(): void {
    this.close()
    this.#budget.release(this)
  }

  /** Drops what waits and everything that comes later. */
  close(): void {
    this.#closed = true
    this.#empty()
  }

  /** Returns whether the socket's buffer has room for more. */
  #write(bytes: Buffer): boolean {
    if (this.#socket.writableLength === 0) return this.#socket.write(bytes)
    this.#queued += 1
    this.#onWritten ??= () => void (this.#queued -= 1)
    return this.#socket.write(bytes, this.#onWritten)
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
