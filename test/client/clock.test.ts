/** The service's clock as the client estimates it, and the round trip that a game shows. */
import { assert, describe, it } from "@effect/vitest"
import { makeClock } from "#client/clock"

/** Timers of a device whose monotonic clock the test sets. */
const device = () => {
  const at = { elapsed: 0 }
  const clock = makeClock({
    now: () => 1_000_000,
    elapsed: () => at.elapsed,
    random: () => 0,
    after: () => () => undefined
  })
  return { at, clock }
}

describe("the client's clock", () => {
  it("shows the last round trip in whole milliseconds", () => {
    const { clock } = device()
    assert.isNull(clock.latency)
    clock.measured(5000, 41.73)
    assert.strictEqual(clock.latency, 42)
    clock.measured(5000, 0.2)
    assert.strictEqual(clock.latency, 0)
  })

  it("estimates the time from the shortest round trip of five minutes, unrounded", () => {
    const { at, clock } = device()
    assert.strictEqual(clock.now(), 1_000_000)
    at.elapsed = 100
    clock.measured(5000, 9.4)
    assert.strictEqual(clock.now(), 5005)
    clock.measured(9000, 80)
    assert.strictEqual(clock.now(), 5005)
    at.elapsed += 5 * 60_000
    clock.measured(400_000, 80)
    assert.strictEqual(clock.now(), 400_040)
  })
})
