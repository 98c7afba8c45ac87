/** WebSocket frames as bytes (RFC 6455 section 5.2): valid ones, and ones that violate the protocol. */

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

const mask = Buffer.of(1, 2, 3, 4)

const lengthOf = (size: number): Buffer => {
  if (size < 126) return Buffer.of(size)
  const bytes = Buffer.alloc(size < 65_536 ? 3 : 9)
  bytes[0] = size < 65_536 ? 126 : 127
  if (size < 65_536) bytes.writeUInt16BE(size, 1)
  else bytes.writeBigUInt64BE(BigInt(size), 1)
  return bytes
}

/** A frame of a client. `size` overrides the length in its header. */
export const frame = (
  opcode: number,
  content: string | Uint8Array = "",
  options: {
    readonly fin?: boolean
    readonly reserved?: number
    readonly masked?: boolean
    readonly size?: number
  } = {}
): Buffer => {
  const { fin = true, masked = true, reserved = 0 } = options
  const payload = Buffer.from(content)
  const head = lengthOf(options.size ?? payload.length)
  if (masked) head[0] = (head[0] ?? 0) | 0x80
  const body = payload.map((byte, index) => (masked ? byte ^ (mask[index % 4] ?? 0) : byte))
  const first = Buffer.of((fin ? 0x80 : 0) | (reserved << 4) | opcode)
  return Buffer.concat(masked ? [first, head, mask, body] : [first, head, body])
}

export const text = (value: object): Buffer => frame(opcodes.text, JSON.stringify(value))

/** The code of the close frame in the bytes of a server, if there is one. */
export const closeCodeIn = (received: Buffer): number | undefined => {
  const end = received.indexOf("\r\n\r\n")
  let rest = end < 0 ? Buffer.alloc(0) : received.subarray(end + 4)
  while (rest.length >= 2) {
    const short = rest.readUInt8(1)
    const head = short < 126 ? 2 : short === 126 ? 4 : 10
    if (rest.length < head) return undefined
    const size =
      head === 2 ? short : head === 4 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2))
    const payload = rest.subarray(head, head + size)
    if ((rest.readUInt8(0) & 0x0f) === opcodes.close) {
      return payload.length < 2 ? undefined : payload.readUInt16BE(0)
    }
    rest = rest.subarray(head + size)
  }
  return undefined
}
