/**
 * Frames of text on a stream of bytes: four bytes of length, big-endian, then UTF-8. However the
 * stream is cut into chunks, the frames are the same; nothing longer than the limit is ever kept.
 */
import { rooms } from "#rpc/limits"

const headBytes = 4

/** A peer announced a frame that is too long, or sends something that is no frame. */
export class OversizedFrame extends Error {
  override readonly name = "OversizedFrame"
}

/** The frame as bytes. */
export const encodeFrame = (text: string): Buffer => {
  const length = Buffer.byteLength(text)
  if (length > rooms.linkFrameMaxBytes) throw oversized(length)
  const bytes = Buffer.allocUnsafe(headBytes + length)
  bytes.writeUInt32BE(length)
  bytes.write(text, headBytes)
  return bytes
}

const oversized = (length: number) =>
  new OversizedFrame(`a frame of ${length} bytes, at most ${rooms.linkFrameMaxBytes} are allowed`)

/** Takes chunks, gives frames. */
export class FrameReader {
  #chunks: Array<Buffer> = []
  /** Bytes in the chunks. */
  #held = 0
  /** Bytes that the next step needs: a head, or a frame with its head. */
  #needed = headBytes

  /** The frames that are whole with this chunk. Throws {@link OversizedFrame}. */
  push(chunk: Buffer): ReadonlyArray<string> {
    this.#chunks.push(chunk)
    this.#held += chunk.length
    if (this.#held < this.#needed) return []
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#held)
    const frames: Array<string> = []
    let at = 0
    while (bytes.length - at >= headBytes) {
      const length = bytes.readUInt32BE(at)
      if (length > rooms.linkFrameMaxBytes) throw oversized(length)
      this.#needed = headBytes + length
      if (bytes.length - at < this.#needed) break
      frames.push(bytes.toString("utf8", at + headBytes, at + this.#needed))
      at += this.#needed
      this.#needed = headBytes
    }
    const rest = bytes.subarray(at)
    this.#chunks = rest.length === 0 ? [] : [rest]
    this.#held = rest.length
    return frames
  }
}
