/** The age of the oldest unwritten change of a room. */
import { assert, describe, it } from "@effect/vitest"
import { PendingWrites } from "#entities/room/pending-writes"

describe("the age of the oldest unwritten change", () => {
  it("counts the age of unwritten changes from the first one that no finished write covers", () => {
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

  it("counts the age of a change on while the time of day steps back or a monotonic clock stands still", () => {
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
