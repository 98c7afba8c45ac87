/** The sliding window: never more than the limit in any window, and free places not much later. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { SlidingWindow, slotsPerWindow } from "#server/platform/sliding-window"

const windowMillis = 60_000

/** The most events in any window that ends at an event. */
const most = (times: ReadonlyArray<number>, millis: number): number => {
  let first = 0
  let found = 0
  times.forEach((time, index) => {
    while ((times[first] ?? 0) <= time - millis) first += 1
    found = Math.max(found, index - first + 1)
  })
  return found
}

describe("sliding window", () => {
  it("takes the limit at once, and nothing more until the window has passed", () => {
    const window = new SlidingWindow(600, windowMillis)
    const start = 1_000_000
    const taken = Array.from({ length: 700 }, () => window.take(start)).filter(Boolean)
    assert.lengthOf(taken, 600)
    assert.isFalse(window.take(start + windowMillis - 1))
    const wait = window.retryAfterMillis(start)
    assert.isAtLeast(wait, windowMillis)
    assert.isAtMost(wait, windowMillis + windowMillis / slotsPerWindow)
    assert.isFalse(window.take(start + wait - 1))
    assert.isTrue(window.take(start + wait))
    assert.strictEqual(window.retryAfterMillis(start + wait), 0)
  })

  it("counts too many at no time, whatever the times and the limit", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 100_000 }),
        fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 400 }),
        (limit, millis, gaps) => {
          const window = new SlidingWindow(limit, millis)
          const accepted: Array<number> = []
          let now = 0
          for (const gap of gaps) {
            now += gap
            if (window.take(now)) accepted.push(now)
          }
          assert.isAtMost(most(accepted, millis), limit)
        }
      )
    )
  })

  it("frees a place at most one slot after its event has left the window", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 300 }),
        (limit, gaps) => {
          const window = new SlidingWindow(limit, windowMillis)
          const longest = windowMillis + windowMillis / slotsPerWindow
          const accepted: Array<number> = []
          let now = 0
          for (const gap of gaps) {
            now += gap
            const held = accepted.filter((time) => time > now - longest).length
            const isTaken = window.take(now)
            if (held < limit) assert.isTrue(isTaken, `${held} of ${limit} held at ${now}`)
            if (isTaken) accepted.push(now)
          }
        }
      )
    )
  })

  it("takes several events together or none", () => {
    const window = new SlidingWindow(10, windowMillis)
    assert.isTrue(window.take(0, 7))
    assert.isFalse(window.take(0, 4))
    assert.isTrue(window.take(0, 3))
  })

  it("keeps what it counted when the clock steps back", () => {
    const window = new SlidingWindow(2, windowMillis)
    assert.isTrue(window.take(100_000))
    assert.isTrue(window.take(50_000))
    assert.isFalse(window.take(100_001))
  })
})
