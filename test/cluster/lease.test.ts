/** Ownership after a pause of the process, the cluster's timings, and which runners monitor which. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { shardingTimings } from "#server/cluster/cluster"
import { ringNeighboursOf } from "#server/cluster/health"
import { PauseDetector } from "#server/cluster/pause-detector"

const makeDetector = () => {
  const clock = { now: 1_000_000 }
  return { clock, detector: new PauseDetector(3500, () => clock.now) }
}

describe("the pause detector", () => {
  it("stays confirmed while it is polled often enough", () => {
    const { clock, detector } = makeDetector()
    for (let i = 0; i < 100; i++) {
      clock.now += 3500
      assert.isFalse(detector.isUnconfirmed)
    }
  })

  it("is unconfirmed after a pause, until a refresh of the locks succeeds", () => {
    const { clock, detector } = makeDetector()
    clock.now += 8000
    assert.isTrue(detector.isUnconfirmed)
    clock.now += 10
    assert.isTrue(detector.isUnconfirmed)
    const confirm = detector.beginRefresh()
    assert.isTrue(detector.isUnconfirmed)
    confirm()
    assert.isFalse(detector.isUnconfirmed)
  })

  it("ignores a refresh that began before the pause", () => {
    const { clock, detector } = makeDetector()
    const confirm = detector.beginRefresh()
    clock.now += 8000
    assert.isTrue(detector.isUnconfirmed)
    confirm()
    assert.isTrue(detector.isUnconfirmed)
  })

  it("needs another refresh when the process is paused during one", () => {
    const { clock, detector } = makeDetector()
    clock.now += 8000
    const confirm = detector.beginRefresh()
    clock.now += 8000
    assert.isTrue(detector.isUnconfirmed)
    confirm()
    assert.isTrue(detector.isUnconfirmed)
    detector.beginRefresh()()
    assert.isFalse(detector.isUnconfirmed)
  })
})

describe("the sharding timings", () => {
  const { entityTerminationTimeout, shardLockExpiration, shardLockRefreshInterval } =
    shardingTimings

  it("leave a database that takes 700 ms for a statement enough time to refresh locks", () => {
    const deadline = Math.min(shardLockRefreshInterval, shardLockExpiration / 3)
    assert.isAtLeast(deadline, 2 * 700)
  })

  it("stop entities before another runner may start them", () => {
    assert.isBelow(entityTerminationTimeout, shardLockExpiration - 2 * shardLockRefreshInterval)
  })
})

describe("monitored neighbours", () => {
  it("are the next two of the ring, never the runner itself", () => {
    assert.deepStrictEqual(ringNeighboursOf("b", ["d", "a", "b", "c"]), ["c", "d"])
    assert.deepStrictEqual(ringNeighboursOf("d", ["d", "a", "b", "c"]), ["a", "b"])
    assert.deepStrictEqual(ringNeighboursOf("a", ["a"]), [])
    assert.deepStrictEqual(ringNeighboursOf("x", ["a", "y"]), ["y", "a"])
  })

  it("leave no runner of the cluster unmonitored", () => {
    const cluster = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 2, maxLength: 12 })
    fc.assert(
      fc.property(cluster, (runners) => {
        for (const runner of runners) {
          const watchers = runners.filter((other) =>
            ringNeighboursOf(other, runners).includes(runner)
          )
          assert.lengthOf(watchers, Math.min(2, runners.length - 1))
        }
      })
    )
  })
})
