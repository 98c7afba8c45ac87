/** Frames on a byte stream: independent of chunks, and bounded in memory. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { runnerPort } from "#rpc/limits"
import { encodeFrame, FrameReader, OversizedFrame } from "#server/cluster/framing"

const texts = fc.array(fc.string({ unit: "binary", maxLength: 200 }), { maxLength: 20 })

/** Positions of cuts, as shares of the stream. */
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 })

const chunksOf = (bytes: Buffer, at: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const places = at.map((share) => Math.floor(share * bytes.length)).toSorted((a, b) => a - b)
  return [...places, bytes.length].map((end, i) => bytes.subarray(places[i - 1] ?? 0, end))
}

/** A frame header that announces this many bytes. */
const header = (length: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return bytes
}

describe("the frame reader", () => {
  it("returns the same frames however the stream is cut into chunks", () => {
    fc.assert(
      fc.property(texts, cuts, (frames, at) => {
        const reader = new FrameReader()
        const stream = Buffer.concat(frames.map(encodeFrame))
        const read = chunksOf(stream, at).flatMap((chunk) => reader.push(chunk))
        assert.deepStrictEqual(
          read,
          frames.map((frame) => Buffer.from(frame).toString())
        )
      })
    )
  })

  it("returns a frame with its last byte, and not before", () => {
    const reader = new FrameReader()
    const bytes = encodeFrame("äöü")
    for (const byte of bytes.subarray(0, -1)) assert.isEmpty(reader.push(Buffer.from([byte])))
    assert.deepStrictEqual(reader.push(bytes.subarray(-1)), ["äöü"])
  })

  it("refuses a frame that is announced as too long, before it buffers any of it", () => {
    assert.isEmpty(new FrameReader().push(header(runnerPort.frameMaxBytes)))
    assert.throws(
      () => new FrameReader().push(header(runnerPort.frameMaxBytes + 1)),
      OversizedFrame
    )
  })

  it("returns the frames before garbage, and refuses the garbage", () => {
    fc.assert(
      fc.property(
        texts,
        fc.integer({ min: runnerPort.frameMaxBytes + 1, max: 2 ** 32 - 1 }),
        (frames, length) => {
          const reader = new FrameReader()
          assert.lengthOf(reader.push(Buffer.concat(frames.map(encodeFrame))), frames.length)
          assert.throws(() => reader.push(header(length)), OversizedFrame)
        }
      )
    )
  })
})
