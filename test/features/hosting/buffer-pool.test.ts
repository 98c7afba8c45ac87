/** Buffers for pieces of files: how large, how many, and used again. */
import { assert, describe, it } from "@effect/vitest"
import { BufferPool } from "#server/features/hosting/buffer-pool"

const makePool = () =>
  new BufferPool({ largeBytes: 1000, largeMax: 2, smallBytes: 100, smallKept: 1 })

describe("buffers of a pool", () => {
  it("takes a small buffer from a pool for few bytes, and while all large ones are in use", () => {
    const pool = makePool()
    assert.lengthOf(pool.take(100).buffer, 100)
    const large = [pool.take(101), pool.take(5000)]
    for (const { buffer } of large) assert.lengthOf(buffer, 1000)
    assert.lengthOf(pool.take(5000).buffer, 100)
  })

  it("reuses buffers of a pool once they are given back", () => {
    const pool = makePool()
    const large = pool.take(500)
    const small = pool.take(1)
    const other = pool.take(1)
    assert.notStrictEqual(other.buffer, small.buffer)
    for (const piece of [large, small, other]) piece.giveBack()
    assert.strictEqual(pool.take(500).buffer, large.buffer)
    assert.strictEqual(pool.take(1).buffer, small.buffer)
    assert.notStrictEqual(pool.take(1).buffer, other.buffer)
  })

  it("never reuses abandoned buffers of a pool, and makes large ones in their place", () => {
    const pool = makePool()
    const abandoned = [pool.take(500), pool.take(500)]
    for (const piece of abandoned) piece.abandon()
    const fresh = [pool.take(500), pool.take(500)]
    for (const { buffer } of fresh) {
      assert.lengthOf(buffer, 1000)
      assert.isFalse(abandoned.some((piece) => piece.buffer === buffer))
    }
  })
})
