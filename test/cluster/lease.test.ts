/** Ownership after a pause of the process, and the cluster's timings. */
import { assert, describe, it } from "@effect/vitest"
import { shardingTimings } from "#server/cluster/cluster"
import { makeLeaseTimer } from "#server/cluster/shard-locks"

const makeTimer = () => {
  const clock = { now: 1_000_000, timeOfDay: 0 }
  const clocks = [() => clock.now, () => clock.now + clock.timeOfDay]
  return { clock, timer: makeLeaseTimer(4500, clocks) }
}

describe("the lease of a runner", () => {
  it("lasts while its locks are refreshed often enough", () => {
    const { clock, timer } = makeTimer()
    for (let i = 0; i < 100; i++) {
      const confirm = timer.beginRefresh()
      clock.now += 1000
      confirm(true)
      clock.now += 3499
      assert.isTrue(timer.hasLease())
    }
    assert.strictEqual(timer.pauses(), 0)
  })

  it("ends after a pause, until a refresh of the locks succeeds", () => {
    const { clock, timer } = makeTimer()
    clock.now += 8000
    assert.isFalse(timer.hasLease())
    const confirm = timer.beginRefresh()
    assert.isFalse(timer.hasLease())
    confirm(true)
    assert.isTrue(timer.hasLease())
    assert.strictEqual(timer.pauses(), 1)
  })

  it("ends without a pause when no refresh succeeds", () => {
    const { clock, timer } = makeTimer()
    for (let i = 0; i < 3; i++) {
      clock.now += 1600
      timer.beginRefresh()
    }
    assert.isFalse(timer.hasLease())
    assert.strictEqual(timer.pauses(), 0)
  })

  it("ends with a refresh that fails, until another one succeeds", () => {
    const { timer } = makeTimer()
    timer.beginRefresh()(false)
    assert.isFalse(timer.hasLease())
    timer.beginRefresh()(true)
    assert.isTrue(timer.hasLease())
  })

  it("ends after a pause during which the time of day stepped back", () => {
    const { clock, timer } = makeTimer()
    clock.timeOfDay -= 600_000
    assert.isTrue(timer.hasLease())
    clock.now += 8000
    clock.timeOfDay -= 8000
    assert.isFalse(timer.hasLease())
  })

  it("ends after a sleep of the machine, during which only the time of day went on", () => {
    const { clock, timer } = makeTimer()
    clock.timeOfDay += 8000
    assert.isFalse(timer.hasLease())
  })

  it("does not begin again with a refresh that began before the pause", () => {
    const { clock, timer } = makeTimer()
    const confirm = timer.beginRefresh()
    clock.now += 8000
    confirm(true)
    assert.isFalse(timer.hasLease())
    timer.beginRefresh()(true)
    assert.isTrue(timer.hasLease())
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
