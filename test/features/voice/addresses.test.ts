/** What a member of a call through the media server receives of another: no frame or packet has an address. */
import { createSocket } from "node:dgram"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestApp } from "#testing/app"
import { DatabaseLive } from "../../support/service.ts"
import { enableVoice, newMember, voiceChannel } from "../../support/voice-calls.ts"
import { connectVoice, eventually } from "../../support/voice-peer.ts"

/** The address that nobody may see. Only Linux has more than one of its own by default. */
const hidden = "127.0.0.3"
const isLinux = process.platform === "linux"

const bytesOf = (address: string): Buffer => Buffer.from(address.split(".").map(Number))

/** As STUN writes an address. */
const masked = (address: string): Buffer => {
  const bytes = bytesOf(address)
  bytes.writeUInt32BE((bytes.readUInt32BE(0) ^ 0x21_12_a4_42) >>> 0, 0)
  return bytes
}

/** Stands between a member and the media server, and keeps what the member receives. */
const tap = Effect.gen(function* () {
  const socket = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createSocket>>((resume) => {
      const open = createSocket("udp4")
      open.bind(0, "127.0.0.1", () => resume(Effect.succeed(open)))
    }),
    (open) => Effect.sync(() => open.close())
  )
  const datagrams: Array<Buffer> = []
  const sources = new Set<number>()
  let server = 0
  let member = 0
  socket.on("message", (datagram, { port }) => {
    if (port === server) {
      datagrams.push(datagram)
      socket.send(datagram, member, "127.0.0.1")
    } else if (server !== 0) {
      sources.add(port)
      member = port
      socket.send(datagram, server, "127.0.0.1")
    }
  })
  const through = (candidate: string): string => {
    const fields = candidate.split(" ")
    server = Number(fields[5])
    fields[4] = "127.0.0.1"
    fields[5] = String(socket.address().port)
    return fields.join(" ")
  }
  return { through, datagrams, sources }
})

/** A report of a sender (RTCP) whose description of the source names its address. */
const revealing = (): Buffer => {
  const name = Buffer.from(hidden)
  const chunk = Buffer.alloc(4 + Math.ceil((2 + name.length + 1) / 4) * 4)
  chunk.writeUInt32BE(77, 0)
  chunk.writeUInt8(1, 4)
  chunk.writeUInt8(name.length, 5)
  name.copy(chunk, 6)
  const report = Buffer.alloc(28)
  report.writeUInt16BE(0x80_c8, 0)
  report.writeUInt16BE(6, 2)
  report.writeUInt32BE(77, 4)
  const description = Buffer.alloc(4)
  description.writeUInt16BE(0x81_ca, 0)
  description.writeUInt16BE(chunk.length / 4, 2)
  return Buffer.concat([report, description, chunk])
}

/** Whether STUN and DTLS, which are no sound, have the address in any form. */
const reveals = (datagram: Buffer, address: string): boolean =>
  datagram.includes(address) ||
  ((datagram[0] ?? 0) < 64 &&
    (datagram.includes(bytesOf(address)) || datagram.includes(masked(address))))

const AppLive = TestApp.layerWith({
  SVC_VOICE_UDP_PORTS: "0",
  SVC_VOICE_PUBLIC_IP: "127.0.0.1"
}).pipe(Layer.provide(DatabaseLive))

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("the media server", (it) => {
  it.effect.skipIf(!isLinux)(
    "shows no member the address of another, in no frame or packet (skipped unless Linux)",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* enableVoice(app)
        const channel = yield* voiceChannel(app, { voice: { mode: "sfu" } })
        const bob = yield* newMember(app, channel)
        const { datagrams, sources, through } = yield* tap
        const packets: Array<Buffer> = []
        const onPacket = (packet: Buffer) => void packets.push(packet)
        const bobs = yield* connectVoice(bob, channel, { through, onPacket })
        const ada = yield* newMember(app, channel)
        const adas = yield* connectVoice(ada, channel, { bindAddress: hidden })
        assert.strictEqual(adas.peer.connection.getSelectedCandidatePair()?.local.address, hidden)
        const { session } = adas
        yield* ada.socket.request({ t: "voicePublish", channel, session, on: true })
        adas.peer.speak()
        yield* eventually(() => {
          adas.peer.raw(revealing())
          return bobs.peer.total() > 50
        }, "bob hears ada")
        assert.strictEqual(sources.size, 1, "bob's end sends from one port")
        assert.isTrue(
          datagrams.some((datagram) => reveals(datagram, "127.0.0.1")),
          "the tap sees addresses: STUN shows bob his own"
        )
        assert.isEmpty(datagrams.filter((datagram) => reveals(datagram, hidden)))
        const kinds = new Set(packets.map((packet) => packet.readUInt8(1) & 0x7f))
        assert.deepStrictEqual(Array.from(kinds), [111], "only Opus reaches bob")
        const named = packets.filter(
          (packet) => packet.includes(hidden) || packet.includes(bytesOf(hidden))
        )
        assert.isEmpty(named)
        const frames = JSON.stringify(bob.socket.received)
        assert.include(frames, ada.id)
        assert.notInclude(frames, hidden)
      }),
    { tags: "long" }
  )
})
