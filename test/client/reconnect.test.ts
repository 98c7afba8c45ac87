/** The reconnect policy: what follows each close, and how often the players of a drained node try. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { closeCodes } from "#rpc/close-codes"
import {
  afterClose,
  type Attempts,
  startingMillis,
  startingMaxMillis,
  noAttempts,
  stableMillis
} from "#client/reconnect"
import { abnormalClosure } from "#client/socket"
import { mulberry32 } from "../bench/load/schedule.ts"

const delay = (code: number, failures: number, random = 0.5) => {
  const next = afterClose({ failures, drainedAt: undefined }, { code, at: 0 }, random)
  return next.reconnect ? next.delayMillis : "never"
}

/** When a client whose socket closes with this code at 0 tries, if each of its attempts ends so. */
const triesAfter = (first: number, then: number, randoms: ReadonlyArray<number>) => {
  const tries: Array<number> = []
  let attempts: Attempts = noAttempts
  for (const random of randoms) {
    const code = tries.length === 0 ? first : then
    const next = afterClose(attempts, { code, at: tries.at(-1) ?? 0 }, random)
    if (!next.reconnect) return tries
    attempts = next.attempts
    tries.push((tries.at(-1) ?? 0) + next.delayMillis)
  }
  return tries
}

const gapsOf = (tries: ReadonlyArray<number>) =>
  tries.slice(1).map((at, index) => ({ from: tries[index]!, millis: at - tries[index]! }))

/** Numbers in [0, 1), the ends often. */
const randoms = fc.array(
  fc.oneof(fc.constantFrom(0, 0.999_999), fc.double({ min: 0, max: 0.999_999, noNaN: true })),
  { minLength: 2, maxLength: 60 }
)

describe("after a close", () => {
  it("does not reconnect a client that was refused or replaced", () => {
    const { forbidden, replaced, unauthorized, unsupported } = closeCodes
    for (const code of [unauthorized, forbidden, replaced, unsupported]) {
      assert.strictEqual(delay(code, 0), "never")
    }
  })

  it("reconnects at once after 4002, only the first time", () => {
    assert.strictEqual(delay(closeCodes.tokenExpired, 0), 0)
    assert.isAbove(Number(delay(closeCodes.tokenExpired, 1)), 0)
  })

  it("doubles the delay between reconnects up to a bound, with full jitter", () => {
    assert.deepStrictEqual(
      [0, 1, 2, 19].map((failures) => delay(abnormalClosure, failures)),
      [250, 500, 1000, 7500]
    )
    assert.strictEqual(delay(abnormalClosure, 19, 0), 0)
    assert.isAtMost(Number(delay(closeCodes.idle, 19, 0.999)), 15_000)
  })

  it("waits at least five seconds to reconnect after a close for abuse", () => {
    assert.isAtLeast(Number(delay(closeCodes.abuse, 0, 0)), stableMillis)
  })
})

describe("the players of a drained node", () => {
  it("spreads the first reconnects of players of a drained node over a second", () => {
    assert.strictEqual(delay(closeCodes.draining, 0, 0), 0)
    assert.strictEqual(delay(closeCodes.draining, 0, 0.5), 500)
    assert.strictEqual(delay(closeCodes.draining, 0, 0.9999), 1000)
  })

  it("retries a refused reconnect after one to two seconds each for as long as a seat is kept", () => {
    fc.assert(
      fc.property(randoms, (values) => {
        const tries = triesAfter(closeCodes.draining, abnormalClosure, values)
        assert.isAtMost(tries[0]!, startingMillis)
        for (const { from, millis } of gapsOf(tries)) {
          if (from >= startingMaxMillis) break
          assert.isAtLeast(millis, startingMillis)
          assert.isAtMost(millis, 2 * startingMillis)
        }
      })
    )
  })

  it("backs off from reconnects to a drained node once the seats are gone", () => {
    const tries = triesAfter(closeCodes.draining, abnormalClosure, Array(40).fill(0.999_999))
    const later = gapsOf(tries).filter(({ from }) => from >= startingMaxMillis)
    assert.deepStrictEqual(
      later.slice(0, 6).map(({ millis }) => millis),
      [1000, 2000, 4000, 8000, 15_000, 15_000]
    )
  })

  it("backs off from reconnects as after any loss once a node has accepted a player and was too busy", () => {
    const { draining, idle, slowConsumer } = closeCodes
    fc.assert(
      fc.property(fc.constantFrom(draining, idle, slowConsumer), randoms, (busy, values) => {
        const tries = triesAfter(draining, busy, values)
        const gaps = gapsOf(tries).map(({ millis }) => millis)
        const expected = values
          .slice(1)
          .map((random, index) => Math.round(Math.min(15_000, 1000 * 2 ** index) * random))
        assert.deepStrictEqual(gaps, expected)
      })
    )
  })

  it("limits 10,000 players of a drained node to 1,200 attempts to reconnect in 100 ms", () => {
    const random = mulberry32(1)
    const perSlice = new Map<number, number>()
    for (let player = 0; player < 10_000; player++) {
      const values = Array.from({ length: 20 }, random)
      for (const at of triesAfter(closeCodes.draining, abnormalClosure, values)) {
        const slice = Math.floor(at / 100)
        perSlice.set(slice, (perSlice.get(slice) ?? 0) + 1)
      }
    }
    assert.isAtMost(Math.max(...perSlice.values()), 1200)
  })
})
