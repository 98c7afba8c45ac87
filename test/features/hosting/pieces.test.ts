/** Buffers for pieces of files: how large, how many, and used again. */
import { assert, describe, it } from "@effect/vitest"
import { Pieces } from "#server/features/hosting/pieces"

const makePieces = () =>
  new Pieces({ largeBytes: 1000, largeMax: 2, smallBytes: 100, smallKept: 1 })

describe("pieces", () => {
  it("are small for few bytes, and when all large ones are in use", () => {
    const pieces = makePieces()
    assert.lengthOf(pieces.take(100).buffer, 100)
    const large = [pieces.take(101), pieces.take(5000)]
    for (const { buffer } of large) assert.lengthOf(buffer, 1000)
    assert.lengthOf(pieces.take(5000).buffer, 100)
  })

  it("are used again once they are given back", () => {
    const pieces = makePieces()
    const large = pieces.take(500)
    const small = pieces.take(1)
    const other = pieces.take(1)
    assert.notStrictEqual(other.buffer, small.buffer)
    for (const piece of [large, small, other]) piece.giveBack()
    assert.strictEqual(pieces.take(500).buffer, large.buffer)
    assert.strictEqual(pieces.take(1).buffer, small.buffer)
    assert.notStrictEqual(pieces.take(1).buffer, other.buffer)
  })

  it("are never used again when they were abandoned, and leave room for others", () => {
    const pieces = makePieces()
    const abandoned = [pieces.take(500), pieces.take(500)]
    for (const piece of abandoned) piece.abandon()
    const fresh = [pieces.take(500), pieces.take(500)]
    for (const { buffer } of fresh) {
      assert.lengthOf(buffer, 1000)
      assert.isFalse(abandoned.some((piece) => piece.buffer === buffer))
    }
  })
})
