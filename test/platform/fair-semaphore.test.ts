/** Permits shared between tenants: bounds, turns and shares in random sequences; waits and refusals. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { FairSemaphore, FairShares, type FairSharesOptions } from "#server/platform/fair-semaphore"

const keys = ["a", "b", "c", undefined] as const
type Key = (typeof keys)[number]

interface Waiter {
  readonly key: Key
}

const step = fc.record({
  does: fc.constantFrom("ask", "ask", "release", "leave"),
  key: fc.constantFrom(...keys),
  which: fc.nat(20)
})

const bounds = fc.record({
  permits: fc.integer({ min: 1, max: 8 }),
  share: fc.constantFrom(1, 4, Infinity),
  permitsPerKey: fc.integer({ min: 1, max: 8 }),
  waitingPerKey: fc.nat(4)
})

/** The shares beside plain lists of who holds and who waits; each step is checked. */
class Checked {
  readonly shares: FairShares<Waiter>
  readonly options: FairSharesOptions
  readonly holders: Array<Key> = []
  readonly waiters: Array<Waiter> = []

  constructor(options: FairSharesOptions) {
    this.options = options
    this.shares = new FairShares(options)
  }

  run({ does, key, which }: { readonly does: string; readonly key: Key; readonly which: number }) {
    if (does === "ask") this.ask(key)
    else if (does === "release" && this.holders.length > 0) {
      const [holder] = this.holders.splice(which % this.holders.length, 1)
      this.grant(this.shares.release(holder))
    } else if (does === "leave" && this.waiters.length > 0) {
      const [waiter] = this.waiters.splice(which % this.waiters.length, 1)
      if (waiter !== undefined) this.grant(this.shares.leave(waiter.key, waiter))
    }
    this.check()
  }

  ask(key: Key) {
    const { free } = this.shares
    const isNew = this.shares.heldBy(key) === 0 && this.waitingOf(key).length === 0
    if (this.shares.take(key)) this.holders.push(key)
    else {
      assert.isFalse(isNew && free > 0, "a key without a permit gets a free one")
      const waiter = { key }
      const waiting = this.waitingOf(key).length
      const isQueued = this.shares.wait(key, waiter)
      assert.strictEqual(isQueued, waiting < this.options.waitingPerKey)
      if (isQueued) this.waiters.push(waiter)
    }
  }

  grant(granted: ReadonlyArray<Waiter>) {
    for (const waiter of granted) {
      assert.strictEqual(this.waitingOf(waiter.key)[0], waiter, "a key is served in order")
      this.waiters.splice(this.waiters.indexOf(waiter), 1)
      this.holders.push(waiter.key)
    }
  }

  waitingOf(key: Key) {
    return this.waiters.filter((waiter) => waiter.key === key)
  }

  check() {
    const { permits, permitsPerKey, share } = this.options
    const free = permits - this.holders.length
    assert.isAtLeast(free, 0)
    assert.strictEqual(this.shares.free, free)
    for (const key of keys) {
      const held = this.holders.filter((holder) => holder === key).length
      assert.strictEqual(this.shares.heldBy(key), held)
      assert.strictEqual(this.shares.waitingFor(key), this.waitingOf(key).length)
      if (key !== undefined) assert.isAtMost(held, Math.max(1, permitsPerKey ?? permits))
      const mayHoldMore =
        key === undefined ||
        held === 0 ||
        (held < (permitsPerKey ?? permits) &&
          (share === Infinity || held + 1 <= (share ?? Infinity) * (free - 1)))
      const waits = this.waitingOf(key).length > 0
      assert.isFalse(waits && free > 0 && mayHoldMore, `${key} waits although it may go on`)
    }
  }
}

describe("shares of permits", () => {
  it("keeps every bound in random sequences, and lets nobody wait who may go on", () => {
    fc.assert(
      fc.property(bounds, fc.array(step, { maxLength: 150 }), (options, steps) => {
        const checked = new Checked(options)
        for (const one of steps) checked.run(one)
      }),
      { numRuns: 1000 }
    )
  })

  it("gives a waiting key the next permit, however many of another key wait", () => {
    const shares = new FairShares<string>({ permits: 1, waitingPerKey: 100 })
    assert.isTrue(shares.take("a"))
    for (let n = 0; n < 100; n++) shares.wait("a", `a${n}`)
    for (const key of ["b", "c"]) for (let n = 0; n < 2; n++) shares.wait(key, `${key}${n}`)
    let holder = "a"
    const order = Array.from({ length: 7 }, () => {
      const [next = ""] = shares.release(holder)
      holder = next.charAt(0)
      return next
    })
    assert.deepStrictEqual(order, ["a0", "b0", "c0", "a1", "b1", "c1", "a2"])
  })

  it("keeps permits free for keys that hold none", () => {
    const shares = new FairShares<string>({ permits: 10, share: 4, waitingPerKey: 0 })
    const takeAll = (key: string | undefined) => {
      let taken = 0
      while (shares.take(key)) taken += 1
      return taken
    }
    assert.strictEqual(takeAll("a"), 8)
    assert.strictEqual(takeAll("b"), 1)
    // The service's own work may take the last one.
    assert.strictEqual(takeAll(undefined), 1)
    assert.strictEqual(shares.free, 0)
  })

  it("serves the service's own work first", () => {
    const shares = new FairShares<string>({ permits: 1, waitingPerKey: 4 })
    shares.take("a")
    shares.wait("b", "b")
    shares.wait(undefined, "own")
    assert.deepStrictEqual(shares.release("a"), ["own"])
  })
})

describe("a fair semaphore", () => {
  const make = (options: { readonly waitingPerKey: number; readonly waitMillis?: number }) =>
    new FairSemaphore({ permits: 1, refuse: Effect.fail("refused" as const), ...options })

  it.effect("runs waiting work when a permit is released, and refuses work beyond the queue", () =>
    Effect.gen(function* () {
      const semaphore = make({ waitingPerKey: 1 })
      const held = yield* Effect.forkChild(semaphore.withPermit("a")(Effect.never), {
        startImmediately: true
      })
      const waiting = yield* Effect.forkChild(semaphore.withPermit("a")(Effect.succeed("done")), {
        startImmediately: true
      })
      assert.strictEqual(yield* Effect.flip(semaphore.withPermit("a")(Effect.void)), "refused")
      yield* Fiber.interrupt(held)
      assert.strictEqual(yield* Fiber.join(waiting), "done")
      assert.strictEqual(semaphore.free, 1)
    })
  )

  it.effect("refuses who has waited too long, also when a permit is granted just then", () =>
    Effect.gen(function* () {
      const semaphore = make({ waitingPerKey: 4, waitMillis: 100 })
      const held = yield* Effect.forkChild(semaphore.withPermit("a")(Effect.never), {
        startImmediately: true
      })
      const waiting = yield* Effect.forkChild(Effect.flip(semaphore.withPermit("b")(Effect.void)), {
        startImmediately: true
      })
      yield* TestClock.adjust(100)
      assert.strictEqual(yield* Fiber.join(waiting), "refused")
      yield* Fiber.interrupt(held)
      assert.strictEqual(semaphore.free, 1)
    })
  )

  it.effect("loses no permit when holders and waiters are interrupted at any moment", () =>
    Effect.gen(function* () {
      const semaphore = new FairSemaphore({
        permits: 3,
        waitingPerKey: 50,
        refuse: Effect.fail("refused")
      })
      for (let round = 0; round < 50; round++) {
        const fibers = yield* Effect.forEach(Array.from({ length: 40 }), (_, n) =>
          Effect.forkChild(
            semaphore.withPermit(`${n % 5}`)(
              Effect.forEach(Array.from({ length: n % 4 }), () => Effect.yieldNow)
            )
          )
        )
        for (const fiber of fibers.slice(round % 7)) {
          yield* Effect.yieldNow
          if (round % 2 === 0) yield* Fiber.interrupt(fiber)
        }
        yield* Effect.forEach(fibers, (fiber) => Fiber.await(fiber), { discard: true })
        assert.strictEqual(semaphore.free, 3, `round ${round}`)
      }
    })
  )
})
