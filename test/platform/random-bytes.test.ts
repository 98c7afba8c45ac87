/** Random bytes that are drawn in blocks. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import { RandomBlock, SecureRandomLive } from "#server/platform/random-bytes"

describe("random bytes", () => {
  it("hands out random bytes in the order of the system's, each once, in arrays of their own", () => {
    let drawn = 0
    const given: Array<number> = []
    const block = new RandomBlock((bytes) => {
      for (let at = 0; at < bytes.length; at++) bytes[at] = (drawn + at) % 251
      drawn += bytes.length
    })
    for (let i = 0; i < 512; i++) given.push(...block.take(16))
    assert.strictEqual(drawn, 8192)
    assert.deepStrictEqual(
      given,
      Array.from({ length: 8192 }, (_, at) => at % 251)
    )
  })

  it("draws the random bytes of a large request for that request alone", () => {
    const sizes: Array<number> = []
    const block = new RandomBlock((bytes) => void sizes.push(bytes.length))
    assert.strictEqual(block.take(257).length, 257)
    block.take(1)
    assert.strictEqual(block.take(0).length, 0)
    assert.deepStrictEqual(sizes, [257, 4096])
  })

  it.effect("repeats no random bytes", () =>
    Effect.gen(function* () {
      const random = yield* SecureRandom.SecureRandom
      const seen = new Set<string>()
      for (let i = 0; i < 2000; i++) {
        seen.add(Buffer.from(yield* random.randomBytes(10)).toString("hex"))
      }
      assert.strictEqual(seen.size, 2000)
    }).pipe(Effect.provide(SecureRandomLive))
  )
})
