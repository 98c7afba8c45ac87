/** Packets and speakers of the media server: reading, rewriting, and who gets a slot. */
import { assert, describe, it } from "@effect/vitest"
import { fitsOffer, withoutCandidates } from "#server/features/voice/media-driver"
import { readPacket, SlotRewriter } from "#server/features/voice/rtp"
import { SpeakerSlots } from "#server/features/voice/speaker-slots"
import { Chance } from "../../simulation/random.ts"
import { tonePacket } from "../../support/voice-peer.ts"

const tone = (sequence: number, level = 20) => tonePacket({ ssrc: 7, sequence, level })

const read = (packet: Buffer) => {
  const found = readPacket(packet)
  return found ?? assert.fail("no packet of Opus")
}

describe("RTP packets", () => {
  it("reads sequence, timestamp and level, and ignores what is no Opus", () => {
    assert.deepStrictEqual(read(tone(3, 42)), { sequence: 3, timestamp: 2880, level: 42 })
    const other = tone(3)
    other.writeUInt8(96, 1)
    assert.isUndefined(readPacket(other))
    const rtcp = tone(3)
    rtcp.writeUInt8(201, 1)
    assert.isUndefined(readPacket(rtcp))
    assert.isUndefined(readPacket(Buffer.concat([tone(3), Buffer.alloc(1500)])))
  })

  it("reads 100,000 broken packets without a failure", () => {
    const chance = new Chance(1, 1_000_000)
    for (let i = 0; i < 100_000; i++) {
      const packet = tone(i % 65_536).subarray(0, chance.integer(0, 60))
      for (let flips = chance.integer(0, 8); flips > 0; flips--) {
        if (packet.length > 0) packet[chance.integer(0, packet.length - 1)] = chance.integer(0, 255)
      }
      const found = readPacket(packet)
      if (found !== undefined) new SlotRewriter(1).rewrite("a", packet, found, i)
    }
  })

  it("continues sequence numbers and timestamps when another speaker takes the slot", () => {
    const slot = new SlotRewriter(99)
    const send = (speaker: string, sequence: number, now: number) => {
      const packet = tone(sequence)
      return slot.rewrite(speaker, packet, read(packet), now)
    }
    const sent = [send("ann", 65_534, 0), send("ann", 65_535, 20), send("ben", 9, 1020)]
    const again = send("ben", 10, 1040)
    const sequences = [...sent, again].map((packet) => packet.readUInt16BE(2))
    const first = sequences[0] ?? 0
    assert.deepStrictEqual(
      sequences.map((sequence) => (sequence - first + 65_536) % 65_536),
      [0, 1, 2, 3]
    )
    assert.isTrue([...sent, again].every((packet) => packet.readUInt32BE(8) === 99))
    const [, before, after] = sent.map((packet) => packet.readUInt32BE(4))
    assert.strictEqual(((after ?? 0) - (before ?? 0) + 2 ** 32) % 2 ** 32, 48_000)
  })
})

/** Sends packets of a level every 20 ms for a time; returns the slot of the last one. */
const speak = (
  slots: SpeakerSlots,
  id: string,
  level: number,
  from: number,
  millis: number
): number | undefined => {
  let slot: number | undefined
  for (let at = from; at <= from + millis; at += 20) slot = slots.packet(id, level, at)
  return slot
}

describe("the slots of speakers", () => {
  it("gives a free slot after 60 ms of sound, and none to quiet sound", () => {
    const slots = new SpeakerSlots(2)
    assert.isUndefined(speak(slots, "ann", 20, 0, 40))
    assert.strictEqual(speak(slots, "ann", 20, 60, 20), 0)
    assert.isUndefined(speak(slots, "ben", 60, 0, 5000))
    assert.deepStrictEqual(slots.takeChanges(), [[0, "ann"]])
  })

  it("frees a slot after two seconds of silence, or when its speaker leaves", () => {
    const slots = new SpeakerSlots(2)
    speak(slots, "ann", 20, 0, 100)
    speak(slots, "ben", 20, 0, 100)
    slots.remove("ben")
    slots.tick(2099)
    assert.deepStrictEqual(slots.takeChanges(), [
      [0, "ann"],
      [1, null]
    ])
    slots.tick(2100)
    assert.deepStrictEqual(slots.takeChanges(), [[0, null]])
  })

  it("gives a clearly louder speaker the quietest slot after half a second", () => {
    const slots = new SpeakerSlots(2)
    for (let at = 0; at <= 1000; at += 20) {
      slots.packet("ann", 20, at)
      slots.packet("ben", 40, at)
    }
    assert.isUndefined(speak(slots, "cat", 41, 1000, 3000))
    assert.isUndefined(speak(slots, "dan", 10, 5000, 480))
    assert.strictEqual(speak(slots, "dan", 10, 5500, 300), 1)
    assert.deepStrictEqual(slots.takeChanges(), [
      [0, "ann"],
      [1, "dan"]
    ])
  })

  it("gives a free slot at the first sound after a hint of its speaker", () => {
    const slots = new SpeakerSlots(1)
    slots.hint("ann", 0)
    assert.strictEqual(slots.packet("ann", 20, 10), 0)
  })
})

describe("session descriptions", () => {
  it("removes every candidate, and accepts the lines of the offer only", () => {
    const sdp = `v=0\r\n${"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=candidate:1 1 udp 1 10.0.0.1 9 typ host\r\n".repeat(9)}`
    assert.notInclude(withoutCandidates(`${sdp}a=end-of-candidates\r\n`), "candidate")
    assert.isTrue(fitsOffer(sdp, 8))
    assert.isFalse(fitsOffer(sdp, 7))
    assert.isFalse(fitsOffer(sdp.replace("m=audio", "m=video"), 8))
  })
})
