/** When rows are overdue. */
import { assert, describe, it } from "@effect/vitest"
import { overdueAt, refreshMillis } from "#entities/overdue"

const createdAt = 1_800_000_012_345

describe("an active entity", () => {
  it("declares an active entity overdue two to three refresh intervals after a write", () => {
    for (let now = createdAt; now < createdAt + 5 * refreshMillis; now += 777) {
      const ahead = overdueAt(createdAt, now) - now
      assert.isAtLeast(ahead, 2 * refreshMillis)
      assert.isBelow(ahead, 3 * refreshMillis)
    }
  })

  it("gives an active entity one overdue time for all its writes of a refresh interval", () => {
    const times = new Set<number>()
    for (let passed = 1; passed <= refreshMillis; passed += 400) {
      times.add(overdueAt(createdAt, createdAt + passed))
    }
    assert.strictEqual(times.size, 1)
  })

  it("declares an entity overdue one refresh interval after its creation if the clock was behind that", () => {
    const now = createdAt - refreshMillis
    assert.strictEqual(overdueAt(createdAt, now), createdAt + refreshMillis)
  })
})
