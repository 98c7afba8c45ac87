/**
 * Text frames over a byte stream: a 4-byte big-endian length, then UTF-8. The frames do not depend on
 * how the stream is cut into chunks, and a frame above the limit is never buffered.
 */
import { runnerPort } from "#rpc/limits"

const headerBytes = 4

/** The peer announced a frame above the limit, or does not send frames at all. */
export class OversizedFrame extends Error {
  override readonly name = "OversizedFrame"
}

export const encodeFrame = (text: string): Buffer => {
  const length = Buffer.byteLength(text)
  if (length > runnerPort.frameMaxBytes) throw oversized(length)
  const bytes = Buffer.allocUnsafe(headerBytes + length)
  bytes.writeUInt32BE(length)
  bytes.write(text, headerBytes)
  return bytes
}

const oversized = (length: number) =>
  new OversizedFrame(`a frame of ${length} bytes, at most ${runnerPort.frameMaxBytes} are allowed`)

/** Decodes chunks into frames. */
export class FrameReader {
  #chunks: Array<Buffer> = []
  #bufferedBytes = 0
  /** Bytes that the next step needs: a header, or a header and its frame. */
  #neededBytes = headerBytes

  /** Returns the frames that this chunk completes. Throws {@link OversizedFrame}. */
  push(chunk: Buffer): ReadonlyArray<string> {
    this.#chunks.push(chunk)
    this.#bufferedBytes += chunk.length
    if (this.#bufferedBytes < this.#neededBytes) return []
    const bytes =
      this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#bufferedBytes)
    const frames: Array<string> = []
    let at = 0
    while (bytes.length - at >= headerBytes) {
      const length = bytes.readUInt32BE(at)
      if (length > runnerPort.frameMaxBytes) throw oversized(length)
      this.#neededBytes = headerBytes + length
      if (bytes.length - at < this.#neededBytes) break
      frames.push(bytes.toString("utf8", at + headerBytes, at + this.#neededBytes))
      at += this.#neededBytes
      this.#neededBytes = headerBytes
    }
    const rest = bytes.subarray(at)
    this.#chunks = rest.length === 0 ? [] : [rest]
    this.#bufferedBytes = rest.length
    return frames
  }
}
