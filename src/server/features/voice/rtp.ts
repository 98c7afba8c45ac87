/** RTP packets of Opus (RFC 3550), to the extent that forwarding needs. Pure. */

/** Payload type of Opus in all offers. */
export const opusType = 111
/** Id of the header extension with the audio level (RFC 6464) in all offers. */
export const levelExtension = 1

const headerBytes = 12
const packetMaxBytes = 1500
const version = 2
const oneByteExtensions = 0xbe_de
const typeMask = 0x7f
const silentLevel = 127
/** Maximum payload size in bytes of a silent Opus packet (DTX). */
const silentPayloadBytes = 3
/** Assumed level of a packet with sound and without a level, in -dBov. */
const unknownLevel = 40

export interface RtpPacket {
  readonly sequence: number
  readonly timestamp: number
  /** Level in -dBov: 0 is the loudest, 127 is silence. */
  readonly level: number
}

/** Returns the level in the header extensions; undefined without one. */
const levelIn = (packet: Buffer, from: number, to: number): number | undefined => {
  let at = from
  while (at < to) {
    const head = packet.readUInt8(at)
    at += 1
    if (head === 0) continue
    const bytes = (head & 0x0f) + 1
    if (head >> 4 === levelExtension) {
      return at < to ? packet.readUInt8(at) & typeMask : undefined
    }
    at += bytes
  }
  return undefined
}

/** Reads a packet of Opus; undefined for anything else, including RTCP. */
export const readPacket = (packet: Buffer): RtpPacket | undefined => {
  if (packet.length <= headerBytes || packet.length > packetMaxBytes) return undefined
  const first = packet.readUInt8(0)
  if (first >> 6 !== version || (packet.readUInt8(1) & typeMask) !== opusType) return undefined
  let payloadAt = headerBytes + (first & 0x0f) * 4
  let level: number | undefined
  if ((first & 0x10) !== 0) {
    if (packet.length < payloadAt + 4) return undefined
    const profile = packet.readUInt16BE(payloadAt)
    const from = payloadAt + 4
    payloadAt = from + packet.readUInt16BE(payloadAt + 2) * 4
    if (packet.length < payloadAt) return undefined
    if (profile === oneByteExtensions) level = levelIn(packet, from, payloadAt)
  }
  if (packet.length <= payloadAt) return undefined
  const isSilent = packet.length - payloadAt <= silentPayloadBytes
  return {
    sequence: packet.readUInt16BE(2),
    timestamp: packet.readUInt32BE(4),
    level: level ?? (isSilent ? silentLevel : unknownLevel)
  }
}

const sequences = 0x1_00_00
const timestamps = 0x1_00_00_00_00
const ticksPerMilli = 48
/** Timestamp ticks of an Opus packet, which lasts 20 ms. */
const packetTicks = 960

/**
 * Rewriter of the packets of one slot. It gives them one SSRC, and sequence numbers and timestamps that
 * continue across speakers.
 */
export class SlotRewriter {
  readonly ssrc: number
  #speaker: string | undefined
  #sequenceOffset = 0
  #timestampOffset = 0
  #lastSequence = 0
  #lastTimestamp = 0
  #lastAt = 0

  constructor(ssrc: number) {
    this.ssrc = ssrc
  }

  /** Returns the packet for all listeners; `now` is in milliseconds. */
  rewrite(speaker: string, packet: Buffer, read: RtpPacket, now: number): Buffer {
    const isFirst = speaker !== this.#speaker
    if (isFirst) {
      this.#speaker = speaker
      const elapsed = Math.max(packetTicks, Math.round((now - this.#lastAt) * ticksPerMilli))
      this.#sequenceOffset = this.#lastSequence + 1 - read.sequence
      this.#timestampOffset = this.#lastTimestamp + elapsed - read.timestamp
    }
    const sequence = (read.sequence + this.#sequenceOffset + sequences) % sequences
    const timestamp = (read.timestamp + this.#timestampOffset + timestamps) % timestamps
    const ahead = (sequence - this.#lastSequence + sequences) % sequences
    if (ahead < sequences / 2) {
      this.#lastSequence = sequence
      this.#lastTimestamp = timestamp
      this.#lastAt = now
    }
    const out = Buffer.from(packet)
    out.writeUInt8((isFirst ? 0x80 : packet.readUInt8(1) & 0x80) | opusType, 1)
    out.writeUInt16BE(sequence, 2)
    out.writeUInt32BE(timestamp, 4)
    out.writeUInt32BE(this.ssrc, 8)
    return out
  }
}
