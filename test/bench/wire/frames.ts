/**
 * The part of RFC 6455 that the load generator and the `limit` server need: whole, unfragmented
 * frames without extensions. Anything else is an error, so a peer cannot be measured by accident
 * with compression or fragmentation on.
 */

export const opcodes = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** Called for each frame; the payload is `bytes[start, end)` and must not be kept. */
export type VisitFrame = (opcode: number, start: number, end: number) => void

/** Builds one final frame; with `mask` (4 bytes) as a client must send it. */
export function encodeFrame(opcode: number, payload: Uint8Array, mask?: Uint8Array): Buffer {
  const lengthBytes = payload.length < 126 ? 0 : payload.length < 65_536 ? 2 : 8
  const start = 2 + lengthBytes + (mask === undefined ? 0 : 4)
  const frame = Buffer.allocUnsafe(start + payload.length)
  const maskBit = mask === undefined ? 0 : 0x80
  frame[0] = 0x80 | opcode
  frame[1] = maskBit | (lengthBytes === 0 ? payload.length : lengthBytes === 2 ? 126 : 127)
  if (lengthBytes === 2) frame.writeUInt16BE(payload.length, 2)
  if (lengthBytes === 8) frame.writeBigUInt64BE(BigInt(payload.length), 2)
  frame.set(payload, start)
  if (mask !== undefined) {
    frame.set(mask, start - 4)
    for (let i = 0; i < payload.length; i++) frame[start + i]! ^= mask[i & 3]!
  }
  return frame
}

/** Visits every whole server frame in `bytes` and returns how many bytes those frames took. */
export function readFrames(bytes: Buffer, visit: VisitFrame): number {
  let at = 0
  while (at + 2 <= bytes.length) {
    const first = bytes[at]!
    const second = bytes[at + 1]!
    if ((first & 0xf0) !== 0x80) throw new Error("frame is fragmented or compressed")
    if (second > 127) throw new Error("frame from the server is masked")
    let start = at + 2
    let length = second
    if (second === 126) {
      start += 2
      if (start > bytes.length) return at
      length = bytes.readUInt16BE(at + 2)
    } else if (second === 127) {
      start += 8
      if (start > bytes.length) return at
      length = Number(bytes.readBigUInt64BE(at + 2))
    }
    const end = start + length
    if (end > bytes.length) return at
    visit(first & 0x0f, start, end)
    at = end
  }
  return at
}
