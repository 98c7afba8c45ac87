/** Bytes that violate RFC 6455, in place of a handshake or after a valid one. */
import { connect, type Socket } from "node:net"
import { encodeFrame, opcodes, readFrames } from "../bench/wire/frames.ts"
import type { Chance } from "../simulation/random.ts"
import type { Findings } from "./findings.ts"
import { expectedCloseCodes } from "./random-frames.ts"

const mask = Buffer.from([1, 2, 3, 4])
const nothing = Buffer.alloc(0)
const ping = Buffer.from('{"t":"ping","rid":"p"}')

/** A frame with this first byte: not final, reserved bits, an unknown opcode. */
const frameStartingWith = (first: number, payload: Uint8Array = ping): Buffer => {
  const frame = encodeFrame(opcodes.text, payload, mask)
  frame[0] = first
  return frame
}

/** A header that announces this many bytes. */
const lengthHeader = (bytes: bigint): Buffer => {
  const header = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4])
  header.writeBigUInt64BE(bytes, 2)
  return header
}

const closeWith = (code: number, reason: Uint8Array = nothing): Buffer => {
  const head = Buffer.alloc(2)
  head.writeUInt16BE(code)
  return encodeFrame(opcodes.close, Buffer.concat([head, reason]), mask)
}

const repeat = (frame: Buffer, times: number): Buffer =>
  Buffer.concat(Array.from({ length: times }, () => frame))

/** Each makes the service close the socket, or wait for the rest of a frame. */
export const invalidBytes: ReadonlyArray<
  readonly [what: string, bytes: (chance: Chance) => Buffer]
> = [
  ["no mask", () => encodeFrame(opcodes.text, ping)],
  ["no mask, empty", () => Buffer.from([0x81, 0])],
  ["a reserved bit", (chance) => frameStartingWith(chance.pick([0xc1, 0xa1, 0x91, 0xf1]) ?? 0xc1)],
  [
    "a reserved opcode",
    (chance) => frameStartingWith(0x80 | (chance.pick([3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) ?? 3))
  ],
  [
    "a fragmented control frame",
    (chance) => frameStartingWith(chance.pick([0x09, 0x0a, 0x08]) ?? 0x09)
  ],
  [
    "a long control frame",
    (chance) => frameStartingWith(0x80 | (chance.pick([8, 9, 10]) ?? 9), Buffer.alloc(126))
  ],
  ["a continuation of nothing", (chance) => frameStartingWith(chance.pick([0x80, 0x00]) ?? 0x80)],
  ["a text within a text", () => Buffer.concat([frameStartingWith(0x01), frameStartingWith(0x81)])],
  ["a close of one byte", () => encodeFrame(opcodes.close, Buffer.from([3]), mask)],
  [
    "an invalid close code",
    (chance) => closeWith(chance.pick([0, 999, 1004, 1005, 1006, 1015, 2000, 5000, 65_535]) ?? 0)
  ],
  ["a close reason that is not UTF-8", () => closeWith(1000, Buffer.from([0xff, 0xfe]))],
  [
    "a text that is not UTF-8",
    () => frameStartingWith(0x81, Buffer.from([0xc3, 0x28, 0xf0, 0x80]))
  ],
  [
    "a text that is not UTF-8, in fragments",
    () =>
      Buffer.concat([
        frameStartingWith(0x01, Buffer.from([0xf0])),
        frameStartingWith(0x80, Buffer.from([0x28]))
      ])
  ],
  ["a binary frame", () => encodeFrame(opcodes.binary, ping, mask)],
  ["a length of 2^63", () => lengthHeader(2n ** 63n)],
  ["a length of 2^53", () => lengthHeader(2n ** 53n)],
  ["a length of 64 KiB and one", () => lengthHeader(65_537n)],
  [
    "too many fragments",
    () =>
      Buffer.concat([
        frameStartingWith(0x01, nothing),
        repeat(frameStartingWith(0x00, nothing), 80)
      ])
  ],
  [
    "random bytes",
    (chance) => Buffer.concat([Buffer.from([0xff]), Buffer.from(chance.bytes(200))])
  ],
  ["another request", () => Buffer.from("GET / HTTP/1.1\r\nHost: x\r\n\r\n")]
]

/** Unusual but valid: each leaves the socket open. */
export const unusualBytes: ReadonlyArray<(chance: Chance) => Buffer> = [
  () => encodeFrame(opcodes.ping, Buffer.alloc(125), mask),
  () => encodeFrame(opcodes.pong, Buffer.from("unasked"), mask),
  () => encodeFrame(opcodes.text, ping, Buffer.alloc(4)),
  () =>
    Buffer.concat([
      frameStartingWith(0x01, ping.subarray(0, 5)),
      encodeFrame(opcodes.ping, nothing, mask),
      frameStartingWith(0x80, ping.subarray(5))
    ]),
  () =>
    Buffer.concat([
      frameStartingWith(0x01, ping),
      repeat(frameStartingWith(0x00, nothing), 20),
      frameStartingWith(0x80, nothing)
    ]),
  () =>
    Buffer.concat([Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, ping.length, 0, 0, 0, 0]), ping])
]

const key = "dGhlIHNhbXBsZSBub25jZQ=="

const upgrade = (path: string, headers: ReadonlyArray<string>, method = "GET"): Buffer =>
  Buffer.from(
    `${[`${method} ${path} HTTP/1.1`, "Host: localhost", ...headers].join("\r\n")}\r\n\r\n`,
    "latin1"
  )

const upgradeHeaders = [
  "Upgrade: websocket",
  "Connection: Upgrade",
  `Sec-WebSocket-Key: ${key}`,
  "Sec-WebSocket-Version: 13"
]

const realtimePath = "/v1/realtime"

/** Requests that are no valid handshake. */
export const invalidHandshakes: ReadonlyArray<() => Buffer> = [
  () => upgrade(realtimePath, upgradeHeaders.slice(0, 2)),
  () => upgrade(realtimePath, upgradeHeaders, "POST"),
  () => upgrade(realtimePath, [...upgradeHeaders.slice(0, 3), "Sec-WebSocket-Version: 12"]),
  () =>
    upgrade(realtimePath, [
      ...upgradeHeaders.slice(0, 2),
      "Sec-WebSocket-Key: short",
      "Sec-WebSocket-Version: 13"
    ]),
  () => upgrade(realtimePath, ["Upgrade: h2c", ...upgradeHeaders.slice(1)]),
  () => upgrade(realtimePath, ["Upgrade: websocket, websocket", ...upgradeHeaders.slice(1)]),
  () => upgrade(realtimePath, [...upgradeHeaders, "Sec-WebSocket-Protocol: ,,"]),
  () =>
    upgrade(realtimePath, [
      ...upgradeHeaders,
      'Sec-WebSocket-Extensions: permessage-deflate; a="b'
    ]),
  () => upgrade("/v1/nowhere", upgradeHeaders),
  () => upgrade(`${realtimePath}/`, upgradeHeaders),
  () => upgrade("/v1/players/me", upgradeHeaders),
  () => upgrade("//v1/realtime", upgradeHeaders),
  () => upgrade(`${realtimePath}%00`, upgradeHeaders),
  () => upgrade("http://[", upgradeHeaders),
  () => upgrade("/v1/rpc", upgradeHeaders.slice(0, 2)),
  () => upgrade("/v1/rpc", [...upgradeHeaders.slice(0, 3), "Sec-WebSocket-Version: 1"])
]

const timeoutMillis = 10_000

/** A TCP connection that sends bytes and records the reply. */
class RawSocket {
  readonly ended: Promise<void>
  closedWith: number | undefined
  received = ""
  readonly #socket: Socket
  #rest = Buffer.alloc(0)
  #upgraded = false
  #waiting: (() => void) | undefined

  constructor(url: string) {
    const { hostname, port } = new URL(url)
    this.#socket = connect(Number(port), hostname)
    this.#socket.on("data", (chunk) => this.#read(chunk))
    this.#socket.on("error", () => undefined)
    this.ended = new Promise((resolve) => this.#socket.on("close", () => resolve()))
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes)
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Waits for a pattern or the end of the connection; false after the time limit. */
  async until(pattern: RegExp): Promise<boolean> {
    const found = new Promise<void>((resolve) => {
      this.#waiting = () => {
        if (pattern.test(this.received)) resolve()
      }
      this.#waiting()
    })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), timeoutMillis)
    })
    const outcome = await Promise.race([found, this.ended, late])
    clearTimeout(timer)
    return outcome !== false
  }

  #read(chunk: Buffer): void {
    let bytes = Buffer.concat([this.#rest, chunk])
    if (!this.#upgraded) {
      const end = bytes.indexOf("\r\n\r\n")
      this.received += bytes.toString("latin1", 0, end < 0 ? bytes.length : end)
      this.#upgraded = end >= 0 && this.received.startsWith("HTTP/1.1 101")
      bytes = this.#upgraded ? bytes.subarray(end + 4) : nothing
    }
    const used = readFrames(bytes, (opcode, start, end) => {
      if (opcode === opcodes.text) this.received += bytes.toString("utf8", start, end)
      else if (opcode === opcodes.close)
        this.closedWith = end > start ? bytes.readUInt16BE(start) : 1005
    })
    this.#rest = Buffer.from(bytes.subarray(used))
    this.#waiting?.()
  }
}

/** Sends an invalid handshake, which the service must refuse. */
export const sendInvalidHandshake = async (
  url: string,
  chance: Chance,
  findings: Findings
): Promise<number> => {
  const bytes = chance.pick(invalidHandshakes)?.() ?? nothing
  const wire = new RawSocket(url)
  wire.write(bytes)
  const answered = await wire.until(/^HTTP\/1\.1 [1-4]\d\d/)
  if (!answered || !/^HTTP\/1\.1 (?:101|4\d\d [^]*application\/json)/.test(wire.received)) {
    findings.add(`a handshake is answered "${wire.received.slice(0, 30)}"`, String(bytes))
  }
  wire.destroy()
  await wire.ended
  return 1
}

/** Authenticates, sends unusual and then invalid bytes; returns how many frames it sent. */
export const sendInvalidBytes = async (
  url: string,
  auth: object,
  chance: Chance,
  findings: Findings
): Promise<number> => {
  const wire = new RawSocket(url)
  wire.write(upgrade(realtimePath, upgradeHeaders))
  wire.write(encodeFrame(opcodes.text, Buffer.from(JSON.stringify(auth)), mask))
  const odds = chance.integer(0, 6)
  for (let i = 0; i < odds; i++) wire.write(chance.pick(unusualBytes)?.(chance) ?? nothing)
  if (!(await wire.until(/"t":"welcome"/))) findings.add("a socket gets no welcome", wire.received)
  const [what, bytes] = chance.pick(invalidBytes) ?? ["", () => nothing]
  const whole = bytes(chance)
  const cut = chance.happens(0.2)
  wire.write(cut ? whole.subarray(0, chance.integer(1, whole.length)) : whole)
  if (!cut && !(await wire.until(/$^/)))
    findings.add(`${what} does not end a socket`, wire.received.slice(-300))
  if (wire.closedWith !== undefined && !expectedCloseCodes.has(wire.closedWith)) {
    findings.add(`${what} is closed with ${wire.closedWith}`, whole.toString("hex").slice(0, 200))
  }
  wire.destroy()
  await wire.ended
  return odds + 2
}
