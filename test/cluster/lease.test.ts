/** Ownership after a pause of the process, and the cluster's timings. */
import { assert, describe, it } from "@effect/vitest"
import { shardingTimings } from "#server/cluster/cluster"
import { PauseDetector } from "#server/cluster/pause-detector"

const makeDetector = () => {
  const clock = { now: 1_000_000, timeOfDay: 0 }
  const clocks = [() => clock.now, () => clock.now + clock.timeOfDay]
  return { clock, detector: new PauseDetector(3500, clocks) }
}

describe("the pause detector", () => {
  it("keeps the pause detector confirmed while it is polled often enough", () => {
    const { clock, detector } = makeDetector()
    for (let i = 0; i < 100; i++) {
      clock.now += 3500
      assert.isFalse(detector.isUnconfirmed)
    }
  })

  it("leaves the pause detector unconfirmed after a pause, until a refresh of the locks succeeds", () => {
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

  it("detects a pause during which the time of day stepped back", () => {
    const { clock, detector } = makeDetector()
    clock.timeOfDay -= 600_000
    assert.isFalse(detector.isUnconfirmed)
    clock.now += 8000
    clock.timeOfDay -= 8000
    assert.isTrue(detector.isUnconfirmed)
  })

  it("detects a sleep of the machine, during which only the time of day went on", () => {
    const { clock, detector } = makeDetector()
    clock.timeOfDay += 8000
    assert.isTrue(detector.isUnconfirmed)
  })

  it("ignores a refresh that began before the pause", () => {
    const { clock, detector } = makeDetector()
    const confirm = detector.beginRefresh()
    clock.now += 8000
    assert.isTrue(detector.isUnconfirmed)
    confirm()
    assert.isTrue(detector.isUnconfirmed)
  })

  it("needs another refresh of the locks when the process is paused during one", () => {
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

  it("leaves a database that takes 700 ms for a statement enough time to refresh shard locks", () => {
    const deadline = Math.min(shardLockRefreshInterval, shardLockExpiration / 3)
    assert.isAtLeast(deadline, 2 * 700)
  })

  it("stops entities before another runner may start them", () => {
    assert.isBelow(entityTerminationTimeout, shardLockExpiration - 2 * shardLockRefreshInterval)
  })
})
