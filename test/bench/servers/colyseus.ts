/**
 * Colyseus, spoken to in its own protocol as its SDK does: a seat is reserved over HTTP, then binary
 * frames of one code byte, the message's type and MessagePack.
 */
import { randomBytes } from "node:crypto"
import * as Schema from "effect/Schema"
import { encodeFrame, opcodes } from "../wire/frames.ts"
import { blank, firstSeq, messageType } from "../wire/message.ts"
import { LoadSocket, type SocketProtocol } from "../wire/socket.ts"
import { startPeer } from "./peer-packages.ts"
import type { Peer, Player, RoomPlan } from "./peer.ts"

const codes = { joinRoom: 10, roomData: 13 } as const

/** MessagePack's markers of the values used here. */
const packed = { shortText: 0xa0, float64: 0xcb, uint32: 0xce } as const

const Seat = Schema.Struct({
  sessionId: Schema.String,
  roomId: Schema.String,
  processId: Schema.String
})

/** The server answers with a map whose last member is `ts`, as a 32-bit integer. */
function packedDeliveryTime(bytes: Buffer, start: number, end: number): number {
  const at = end - 8
  const isDelivery =
    bytes[start] === codes.roomData &&
    bytes[at] === packed.shortText + 2 &&
    bytes[at + 1] === 0x74 &&
    bytes[at + 2] === 0x73 &&
    bytes[at + 3] === packed.uint32
  return isDelivery ? bytes.readUInt32BE(at + 4) : -1
}

const protocol: SocketProtocol = {
  deliveryTime: packedDeliveryTime,
  greeting: (text) => text.charCodeAt(0) === codes.joinRoom
}

const shortText = (text: string): Buffer =>
  Buffer.concat([Buffer.from([packed.shortText + text.length]), Buffer.from(text)])

function float64(value: number): Buffer {
  const bytes = Buffer.alloc(9, packed.float64)
  bytes.writeDoubleBE(value, 1)
  return bytes
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(5, packed.uint32)
  bytes.writeUInt32BE(value, 1)
  return bytes
}

/** The message as the SDK packs it: msgpackr's record 0x40, its four keys, then their values. */
const blankPayload = Buffer.concat([
  Buffer.from([codes.roomData]),
  shortText(messageType),
  Buffer.from([0xd4, 0x72, 0x40, 0x90 + Object.keys(blank).length]),
  ...Object.keys(blank).map(shortText),
  float64(blank.x),
  float64(blank.y),
  uint32(blank.seq),
  uint32(blank.ts)
])

/** A masked frame whose two integers are overwritten for each send. */
class PackedTemplate {
  readonly #mask = randomBytes(4)
  readonly #frame = encodeFrame(opcodes.binary, blankPayload, this.#mask)

  fill(seq: number, ts: number): Buffer {
    if (ts > 0xffff_ffff) throw new Error("Colyseus: the run is too long for a 32-bit ts")
    const frame = Buffer.from(this.#frame)
    this.#uint32(frame, blankPayload.length - 9, firstSeq + seq)
    this.#uint32(frame, blankPayload.length - 4, ts)
    return frame
  }

  #uint32(frame: Buffer, at: number, value: number): void {
    const start = frame.length - blankPayload.length
    for (let i = 0; i < 4; i++) {
      frame[start + at + i] = ((value >>> (24 - 8 * i)) & 0xff) ^ this.#mask[(at + i) & 3]!
    }
  }
}

/** Asks the matchmaker for a seat; only `create` names the room's class instead of its id. */
async function reserve(url: string, method: "create" | "joinById", room: string) {
  const response = await fetch(`${url}/matchmake/${method}/${room}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}"
  })
  if (!response.ok) throw new Error(`${method} ${room}: ${await response.text()}`)
  return Schema.decodeUnknownSync(Seat)(await response.json())
}

async function enter(plan: RoomPlan, seat: typeof Seat.Type, member: number): Promise<Player> {
  const { processId, roomId, sessionId } = seat
  const server = plan.target.url.replace("http:", "ws:")
  const events = {
    onDelivery: (ts: number) => plan.onDelivery(member, ts),
    onLost: plan.onLost
  }
  const url = `${server}/${processId}/${roomId}?sessionId=${sessionId}`
  const socket = await LoadSocket.connect(url, events, protocol)
  const joined = Buffer.from([codes.joinRoom])
  socket.write(encodeFrame(opcodes.binary, joined, randomBytes(4)))
  const template = new PackedTemplate()
  return { send: (seq, ts) => socket.write(template.fill(seq, ts)) }
}

async function joinRoom(plan: RoomPlan): Promise<ReadonlyArray<Player>> {
  const { url } = plan.target
  const first = await reserve(url, "create", "broadcast")
  const others = await Promise.all(
    Array.from({ length: plan.size - 1 }, () => reserve(url, "joinById", first.roomId))
  )
  return Promise.all([first, ...others].map((seat, member) => enter(plan, seat, member)))
}

export const colyseus: Peer = {
  name: "colyseus",
  start: (core) => startPeer("colyseus.mjs", core),
  joinRoom
}
