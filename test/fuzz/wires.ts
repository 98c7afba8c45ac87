/** Bytes against RFC 6455, after a handshake and a welcome or instead of them. */
import { connect, type Socket } from "node:net"
import { encodeFrame, opcodes, readFrames } from "../bench/load/frames.ts"
import type { Chance } from "../simulation/random.ts"
import type { Findings } from "./findings.ts"
import { closings } from "./frames.ts"

const mask = Buffer.from([1, 2, 3, 4])
const nothing = Buffer.alloc(0)
const ping = Buffer.from('{"t":"ping","rid":"p"}')

/** A frame with its first byte as given: no end, reserved bits, an opcode that is none. */
const odd = (first: number, payload: Uint8Array = ping): Buffer => {
  const frame = encodeFrame(opcodes.text, payload, mask)
  frame[0] = first
  return frame
}

/** A header that promises so many bytes. */
const promise = (bytes: bigint): Buffer => {
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

/** Each is wrong in a way that ends the socket, or leaves it waiting for the rest. */
export const wrongs: ReadonlyArray<readonly [what: string, bytes: (chance: Chance) => Buffer]> = [
  ["no mask", () => encodeFrame(opcodes.text, ping)],
  ["no mask, empty", () => Buffer.from([0x81, 0])],
  ["a reserved bit", (chance) => odd(chance.pick([0xc1, 0xa1, 0x91, 0xf1]) ?? 0xc1)],
  [
    "a reserved opcode",
    (chance) => odd(0x80 | (chance.pick([3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) ?? 3))
  ],
  ["a control frame in pieces", (chance) => odd(chance.pick([0x09, 0x0a, 0x08]) ?? 0x09)],
  [
    "a long control frame",
    (chance) => odd(0x80 | (chance.pick([8, 9, 10]) ?? 9), Buffer.alloc(126))
  ],
  ["a continuation of nothing", (chance) => odd(chance.pick([0x80, 0x00]) ?? 0x80)],
  ["a text within a text", () => Buffer.concat([odd(0x01), odd(0x81)])],
  ["a close of one byte", () => encodeFrame(opcodes.close, Buffer.from([3]), mask)],
  [
    "a close code that is none",
    (chance) => closeWith(chance.pick([0, 999, 1004, 1005, 1006, 1015, 2000, 5000, 65_535]) ?? 0)
  ],
  ["a close reason that is no text", () => closeWith(1000, Buffer.from([0xff, 0xfe]))],
  ["a text that is none", () => odd(0x81, Buffer.from([0xc3, 0x28, 0xf0, 0x80]))],
  [
    "a text that is none, in pieces",
    () => Buffer.concat([odd(0x01, Buffer.from([0xf0])), odd(0x80, Buffer.from([0x28]))])
  ],
  ["a binary frame", () => encodeFrame(opcodes.binary, ping, mask)],
  ["a length of 2^63", () => promise(2n ** 63n)],
  ["a length of 2^53", () => promise(2n ** 53n)],
  ["a length of 64 KiB and one", () => promise(65_537n)],
  ["too many pieces", () => Buffer.concat([odd(0x01, nothing), repeat(odd(0x00, nothing), 80)])],
  ["chance", (chance) => Buffer.concat([Buffer.from([0xff]), Buffer.from(chance.bytes(200))])],
  ["another request", () => Buffer.from("GET / HTTP/1.1\r\nHost: x\r\n\r\n")]
]

/** Each leaves the socket open. */
export const oddities: ReadonlyArray<(chance: Chance) => Buffer> = [
  () => encodeFrame(opcodes.ping, Buffer.alloc(125), mask),
  () => encodeFrame(opcodes.pong, Buffer.from("unasked"), mask),
  () => encodeFrame(opcodes.text, ping, Buffer.alloc(4)),
  () =>
    Buffer.concat([
      odd(0x01, ping.subarray(0, 5)),
      encodeFrame(opcodes.ping, nothing, mask),
      odd(0x80, ping.subarray(5))
    ]),
  () => Buffer.concat([odd(0x01, ping), repeat(odd(0x00, nothing), 20), odd(0x80, nothing)]),
  () =>
    Buffer.concat([Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, ping.length, 0, 0, 0, 0]), ping])
]

const key = "dGhlIHNhbXBsZSBub25jZQ=="

const upgrade = (path: string, headers: ReadonlyArray<string>, method = "GET"): Buffer =>
  Buffer.from(
    `${[`${method} ${path} HTTP/1.1`, "Host: localhost", ...headers].join("\r\n")}\r\n\r\n`,
    "latin1"
  )

const proper = [
  "Upgrade: websocket",
  "Connection: Upgrade",
  `Sec-WebSocket-Key: ${key}`,
  "Sec-WebSocket-Version: 13"
]

const door = "/v1/realtime"

/** Handshakes that are none. */
export const handshakes: ReadonlyArray<() => Buffer> = [
  () => upgrade(door, proper.slice(0, 2)),
  () => upgrade(door, proper, "POST"),
  () => upgrade(door, [...proper.slice(0, 3), "Sec-WebSocket-Version: 12"]),
  () =>
    upgrade(door, [...proper.slice(0, 2), "Sec-WebSocket-Key: short", "Sec-WebSocket-Version: 13"]),
  () => upgrade(door, ["Upgrade: h2c", ...proper.slice(1)]),
  () => upgrade(door, ["Upgrade: websocket, websocket", ...proper.slice(1)]),
  () => upgrade(door, [...proper, "Sec-WebSocket-Protocol: ,,"]),
  () => upgrade(door, [...proper, 'Sec-WebSocket-Extensions: permessage-deflate; a="b']),
  () => upgrade("/v1/nowhere", proper),
  () => upgrade(`${door}/`, proper),
  () => upgrade("/v1/players/me", proper),
  () => upgrade("//v1/realtime", proper),
  () => upgrade(`${door}%00`, proper),
  () => upgrade("http://[", proper),
  () => upgrade("/v1/rpc", proper.slice(0, 2)),
  () => upgrade("/v1/rpc", [...proper.slice(0, 3), "Sec-WebSocket-Version: 1"])
]

const patienceMillis = 10_000

/** Speaks bytes, and hears how the other side takes them. */
class Wire {
  readonly ended: Promise<void>
  closedWith: number | undefined
  heard = ""
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

  /** Waits until that is heard, or for the end; false when neither comes. */
  async until(pattern: RegExp): Promise<boolean> {
    const found = new Promise<void>((resolve) => {
      this.#waiting = () => {
        if (pattern.test(this.heard)) resolve()
      }
      this.#waiting()
    })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), patienceMillis)
    })
    const outcome = await Promise.race([found, this.ended, late])
    clearTimeout(timer)
    return outcome !== false
  }

  #read(chunk: Buffer): void {
    let bytes = Buffer.concat([this.#rest, chunk])
    if (!this.#upgraded) {
      const end = bytes.indexOf("\r\n\r\n")
      this.heard += bytes.toString("latin1", 0, end < 0 ? bytes.length : end)
      this.#upgraded = end >= 0 && this.heard.startsWith("HTTP/1.1 101")
      bytes = this.#upgraded ? bytes.subarray(end + 4) : nothing
    }
    const used = readFrames(bytes, (opcode, start, end) => {
      if (opcode === opcodes.text) this.heard += bytes.toString("utf8", start, end)
      else if (opcode === opcodes.close)
        this.closedWith = end > start ? bytes.readUInt16BE(start) : 1005
    })
    this.#rest = Buffer.from(bytes.subarray(used))
    this.#waiting?.()
  }
}

/** A handshake that is none has to be refused, and the connection be over. */
export const knock = async (url: string, chance: Chance, findings: Findings): Promise<number> => {
  const bytes = chance.pick(handshakes)?.() ?? nothing
  const wire = new Wire(url)
  wire.write(bytes)
  const answered = await wire.until(/^HTTP\/1\.1 [1-4]\d\d/)
  if (!answered || !/^HTTP\/1\.1 (?:101|4\d\d [^]*application\/json)/.test(wire.heard)) {
    findings.add(`a handshake is answered "${wire.heard.slice(0, 30)}"`, String(bytes))
  }
  wire.destroy()
  await wire.ended
  return 1
}

/** Comes in properly, says what is odd and then what is wrong; answers how many frames it said. */
export const misspeak = async (
  url: string,
  auth: object,
  chance: Chance,
  findings: Findings
): Promise<number> => {
  const wire = new Wire(url)
  wire.write(upgrade(door, proper))
  wire.write(encodeFrame(opcodes.text, Buffer.from(JSON.stringify(auth)), mask))
  const odds = chance.integer(0, 6)
  for (let i = 0; i < odds; i++) wire.write(chance.pick(oddities)?.(chance) ?? nothing)
  if (!(await wire.until(/"t":"welcome"/))) findings.add("a wire is not welcomed", wire.heard)
  const [what, bytes] = chance.pick(wrongs) ?? ["", () => nothing]
  const whole = bytes(chance)
  const cut = chance.happens(0.2)
  wire.write(cut ? whole.subarray(0, chance.integer(1, whole.length)) : whole)
  if (!cut && !(await wire.until(/$^/)))
    findings.add(`${what} does not end a socket`, wire.heard.slice(-300))
  if (wire.closedWith !== undefined && !closings.has(wire.closedWith)) {
    findings.add(`${what} is closed with ${wire.closedWith}`, whole.toString("hex").slice(0, 200))
  }
  wire.destroy()
  await wire.ended
  return odds + 2
}
