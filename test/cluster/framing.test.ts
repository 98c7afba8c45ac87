/** Frames on a stream of bytes: the same frames however it is cut, and nothing that grows. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { rooms } from "#rpc/limits"
import { encodeFrame, FrameReader, OversizedFrame } from "#server/cluster/framing"

const texts = fc.array(fc.string({ unit: "binary", maxLength: 200 }), { maxLength: 20 })

/** Any number of cuts, anywhere. */
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 })

const chunksOf = (bytes: Buffer, at: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const places = at.map((share) => Math.floor(share * bytes.length)).toSorted((a, b) => a - b)
  return [...places, bytes.length].map((end, i) => bytes.subarray(places[i - 1] ?? 0, end))
}

/** A frame's head that announces so many bytes. */
const head = (length: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return bytes
}

describe("a stream of frames", () => {
  it("gives the same frames however it is cut into chunks", () => {
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

  it("gives a frame with the byte that makes it whole, and not before", () => {
    const reader = new FrameReader()
    const bytes = encodeFrame("äöü")
    for (const byte of bytes.subarray(0, -1)) assert.isEmpty(reader.push(Buffer.from([byte])))
    assert.deepStrictEqual(reader.push(bytes.subarray(-1)), ["äöü"])
  })

  it("refuses a frame that is announced as too long, before anything of it is kept", () => {
    assert.isEmpty(new FrameReader().push(head(rooms.linkFrameMaxBytes)))
    assert.throws(() => new FrameReader().push(head(rooms.linkFrameMaxBytes + 1)), OversizedFrame)
  })

  it("refuses garbage that follows frames, but not the frames", () => {
    fc.assert(
      fc.property(
        texts,
        fc.integer({ min: rooms.linkFrameMaxBytes + 1, max: 2 ** 32 - 1 }),
        (frames, length) => {
          const reader = new FrameReader()
          assert.lengthOf(reader.push(Buffer.concat(frames.map(encodeFrame))), frames.length)
          assert.throws(() => reader.push(head(length)), OversizedFrame)
        }
      )
    )
  })
})
