/**
 * The benchmark's message: type "m", data `{ x, y, seq, ts }`, about 60 bytes. `ts` is the time at
 * which the schedule wanted it sent, in microseconds of the load generator's own clock.
 *
 * Numbers have a fixed count of digits, so a frame is built and masked once per player and each
 * send only overwrites digits. That and `deliveryTime` keep the load generator's core free.
 */
import { randomBytes } from "node:crypto"
import { encodeFrame, opcodes } from "./frames.ts"

export const firstSeq = 100_000
export const firstTs = 1_000_000_000

/** Microseconds on the generator's clock; ten digits for the first two hours. */
export const clockMicros = (): number => firstTs + Math.floor(performance.now() * 1000)

export const messageType = "m"

/** The message before its digits are filled in. */
export const blank = { x: 1234.567, y: 8901.234, seq: firstSeq, ts: firstTs } as const

/** A JSON text frame around the message's data, to be filled for each send. */
export class MessageTemplate {
  readonly #frame: Buffer
  readonly #mask = randomBytes(4)
  readonly #payloadStart: number
  readonly #seqAt: number
  readonly #tsAt: number

  constructor(wrap: (data: string) => string) {
    const text = wrap(JSON.stringify(blank))
    const payload = Buffer.from(text)
    this.#frame = encodeFrame(opcodes.text, payload, this.#mask)
    this.#payloadStart = this.#frame.length - payload.length
    this.#seqAt = payload.indexOf(String(firstSeq))
    this.#tsAt = payload.indexOf(String(firstTs))
  }

  /** A new frame: the socket may hold on to it, so the template itself is never written. */
  fill(seq: number, ts: number): Buffer {
    const frame = Buffer.from(this.#frame)
    this.#digits(frame, this.#seqAt, 6, firstSeq + seq)
    this.#digits(frame, this.#tsAt, 10, ts)
    return frame
  }

  #digits(frame: Buffer, at: number, count: number, value: number): void {
    let rest = value
    for (let i = at + count - 1; i >= at; i--) {
      frame[this.#payloadStart + i] = (0x30 + (rest % 10)) ^ this.#mask[i & 3]!
      rest = Math.floor(rest / 10)
    }
  }
}

/**
 * The `ts` of a delivered message, or -1 when the frame is something else. It looks for `"ts":`
 * from the end, where every JSON protocol has it, instead of parsing 67,000 documents a second.
 */
export function deliveryTime(bytes: Buffer, start: number, end: number): number {
  for (let i = end - 6; i >= start; i--) {
    if (
      bytes[i] === 0x22 &&
      bytes[i + 1] === 0x74 &&
      bytes[i + 2] === 0x73 &&
      bytes[i + 3] === 0x22 &&
      bytes[i + 4] === 0x3a
    ) {
      let value = 0
      for (let k = i + 5; k < end; k++) {
        const digit = bytes[k]! - 0x30
        if (digit < 0 || digit > 9) break
        value = value * 10 + digit
      }
      return value
    }
  }
  return -1
}
