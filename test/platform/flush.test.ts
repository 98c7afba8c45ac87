/** When a node flushes: at once while it has time to spare, less often the busier its event loop is. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { FlushInterval, flushIntervalMillis, FlushScheduler } from "#server/platform/flush"
import { socketLimits } from "#server/platform/socket-limits"

const { busyShare, coalesceMillis, fullShare, loadMeasuredMillis } = socketLimits

/** An event loop that is busy for a share of the time, as its clock says. */
const makeLoop = () => {
  const loop = { now: 5000, busy: 0 }
  const advance = (millis: number, share: number): void => {
    loop.now += millis
    loop.busy += millis * share
  }
  return { loop, advance }
}

describe("the interval between flushes", () => {
  it("sets the interval between flushes to 0 below half of a core, and never lowers it with the load", () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(share, share, (a, b) => {
        const [low, high] = a < b ? [a, b] : [b, a]
        assert.isAtMost(flushIntervalMillis(low), flushIntervalMillis(high))
        assert.isAtMost(flushIntervalMillis(high), coalesceMillis)
        if (low <= busyShare) assert.strictEqual(flushIntervalMillis(low), 0)
        if (high >= fullShare) assert.strictEqual(flushIntervalMillis(high), coalesceMillis)
      })
    )
  })

  it("raises the interval between flushes within half a second of full load, and resets it half a second after", () => {
    const { advance, loop } = makeLoop()
    const interval = new FlushInterval(loop.now, () => loop.busy)
    const after = (share: number): number => {
      for (let elapsed = 0; elapsed < 500; elapsed += loadMeasuredMillis) {
        advance(loadMeasuredMillis, share)
        interval.at(loop.now)
      }
      return interval.at(loop.now)
    }
    assert.strictEqual(after(0.3), 0)
    assert.isAbove(after(1), 0.9 * coalesceMillis)
    assert.strictEqual(after(0.3), 0)
  })

  it("keeps the interval between flushes below a millisecond after one burst on an idle node", () => {
    const { advance, loop } = makeLoop()
    const interval = new FlushInterval(loop.now, () => loop.busy)
    advance(60_000, 0.01)
    assert.strictEqual(interval.at(loop.now), 0)
    advance(loadMeasuredMillis, 1)
    assert.isBelow(interval.at(loop.now), 1)
  })
})

describe("a flush scheduler", () => {
  it("writes each output at the end of the loop's iteration while the node has time to spare", () => {
    const { advance, loop } = makeLoop()
    const delays: Array<number> = []
    let flushes = 0
    const scheduler = new FlushScheduler(() => loop.now, {
      soon: (run) => {
        delays.push(0)
        run()
      },
      later: (run, millis) => {
        delays.push(millis)
        run()
      },
      busyMillis: () => loop.busy
    })
    for (let turn = 0; turn < 100; turn++) {
      advance(1, 0.4)
      scheduler.scheduleOutput({ flush: () => void flushes++ })
    }
    assert.strictEqual(flushes, 100)
    assert.deepStrictEqual(new Set(delays), new Set([0]))
  })
})
