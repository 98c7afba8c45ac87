/** The age of the oldest unwritten change of a room. */
import { assert, describe, it } from "@effect/vitest"
import { PendingWrites } from "#entities/room/pending-writes"

describe("the age of the oldest unwritten change", () => {
  it("counts from the first change that no finished write covers", () => {
    let now = 0
    const pending = new PendingWrites([() => now])
    assert.strictEqual(pending.delayMillis, 0)
    pending.changed()
    now += 100
    const failed = pending.beginWrite()
    assert.strictEqual(pending.delayMillis, 100)
    now += 100
    pending.changed()
    const covered = pending.beginWrite()
    assert.isAbove(covered, failed)
    now += 100
    pending.changed()
    now += 100
    assert.strictEqual(pending.delayMillis, 400)
    pending.commitWrite(covered)
    assert.strictEqual(pending.delayMillis, 100)
  })

  it("grows while the time of day is set back, and while a monotonic clock stands still", () => {
    let timeOfDay = 0
    let monotonic = 0
    const pending = new PendingWrites([() => timeOfDay, () => monotonic])
    pending.changed()
    timeOfDay -= 60_000
    monotonic += 1000
    assert.strictEqual(pending.delayMillis, 1000)
    timeOfDay += 62_000
    assert.strictEqual(pending.delayMillis, 2000)
  })
})
