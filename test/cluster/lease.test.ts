/** When a runner may act as the owner of its shards, and who looks after whom. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { shardingTimings } from "#server/cluster/cluster"
import { ringNeighboursOf } from "#server/cluster/health"
import { PauseDetector } from "#server/cluster/pause-detector"

const doubting = () => {
  const clock = { now: 1_000_000 }
  return { clock, doubt: new PauseDetector(3500, () => clock.now) }
}

describe("a process", () => {
  it("that notes often enough that it is awake trusts its locks", () => {
    const { clock, doubt } = doubting()
    for (let i = 0; i < 100; i++) {
      clock.now += 3500
      assert.isFalse(doubt.isUnconfirmed)
    }
  })

  it("that was frozen doubts them until they have been asked for again", () => {
    const { clock, doubt } = doubting()
    clock.now += 8000
    assert.isTrue(doubt.isUnconfirmed)
    clock.now += 10
    assert.isTrue(doubt.isUnconfirmed)
    const answered = doubt.beginRefresh()
    assert.isTrue(doubt.isUnconfirmed)
    answered()
    assert.isFalse(doubt.isUnconfirmed)
  })

  it("does not trust an answer to what it asked before it was frozen", () => {
    const { clock, doubt } = doubting()
    const answered = doubt.beginRefresh()
    clock.now += 8000
    assert.isTrue(doubt.isUnconfirmed)
    answered()
    assert.isTrue(doubt.isUnconfirmed)
  })

  it("that is frozen again while it asks asks once more", () => {
    const { clock, doubt } = doubting()
    clock.now += 8000
    const answered = doubt.beginRefresh()
    clock.now += 8000
    assert.isTrue(doubt.isUnconfirmed)
    answered()
    assert.isTrue(doubt.isUnconfirmed)
    doubt.beginRefresh()()
    assert.isFalse(doubt.isUnconfirmed)
  })
})

describe("the cluster's pace", () => {
  const { entityTerminationTimeout, shardLockExpiration, shardLockRefreshInterval } =
    shardingTimings

  it("leaves a database that takes 700 ms for a statement the time to refresh locks", () => {
    const deadline = Math.min(shardLockRefreshInterval, shardLockExpiration / 3)
    assert.isAtLeast(deadline, 2 * 700)
  })

  it("has entities stopped before others may start them", () => {
    assert.isBelow(entityTerminationTimeout, shardLockExpiration - 2 * shardLockRefreshInterval)
  })
})

describe("neighbours", () => {
  it("are the next two of the ring, never oneself", () => {
    assert.deepStrictEqual(ringNeighboursOf("b", ["d", "a", "b", "c"]), ["c", "d"])
    assert.deepStrictEqual(ringNeighboursOf("d", ["d", "a", "b", "c"]), ["a", "b"])
    assert.deepStrictEqual(ringNeighboursOf("a", ["a"]), [])
    assert.deepStrictEqual(ringNeighboursOf("x", ["a", "y"]), ["y", "a"])
  })

  it("leave nobody of the cluster unwatched", () => {
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
