/** Which runners are evicted when runners do not reach each other, and for how long. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Runner, RunnerAddress, RunnerStorage, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"
import { type Change, Invalidation } from "#server/platform/invalidation"
import { FailureDetector, HealthMonitor } from "#server/cluster/health"
import { evictedRunners, Membership, MembershipLive } from "#server/cluster/membership"

const suspicions = (text: string) =>
  text.split(" ").map((pair) => {
    const [by = "", of = ""] = pair.split(">")
    return { by, of }
  })

describe("eviction", () => {
  it.for([
    ["a runner that nobody reaches", "a>c b>c", "c"],
    ["one of two that have lost each other", "a>b b>a", "b"],
    ["the same one of two, next to a third", "a>c c>a", "c"],
    ["the one that has lost all others, whatever it reports", "a>b a>c b>a c>a", "a"],
    ["the one in the middle of a split", "a>b b>a b>c c>b", "b"],
    ["two runners that have died", "a>b c>b a>d c>d", "b d"]
  ] as const)("evicts %s", ([, reports, evicted]) => {
    assert.deepStrictEqual(
      Array.from(evictedRunners(suspicions(reports))).toSorted(),
      evicted.split(" ")
    )
    assert.deepStrictEqual(
      Array.from(evictedRunners(suspicions(reports).toReversed())).toSorted(),
      evicted.split(" ")
    )
  })
})

/** An in-memory channel: every subscriber receives every change. */
const makeInvalidation = () => {
  const listeners: Array<(change: Change) => Effect.Effect<void>> = []
  return Invalidation.of({
    publish: (change) =>
      Effect.forEach(listeners, (listener) => listener(change), { discard: true }),
    subscribe: (listener) => Effect.sync(() => void listeners.push(listener)),
    awaitAcknowledgements: Effect.void
  })
}

describe("a report of a silent runner", () => {
  const [self, other] = [RunnerAddress.make("host", 1), RunnerAddress.make("host", 2)]
  const node = MembershipLive.pipe(
    Layer.provideMerge(Layer.sync(Invalidation, makeInvalidation)),
    Layer.provide(ShardingConfig.layer({ runnerAddress: Option.some(self) }))
  )

  it.effect("ends when the runner answers, or after eight seconds without another report", () =>
    Effect.gen(function* () {
      const { isEvicted, report } = yield* Membership
      yield* report(other, "silent")
      assert.isTrue(isEvicted(other))
      yield* report(other, "answers")
      assert.isFalse(isEvicted(other))
      yield* report(other, "silent")
      yield* TestClock.adjust("8 seconds")
      assert.isTrue(isEvicted(other))
      yield* TestClock.adjust("1 millis")
      assert.isFalse(isEvicted(other))
    }).pipe(Effect.provide(node))
  )

  it.effect("ends when its reporter is gone", () =>
    Effect.gen(function* () {
      const { isSelfEvicted } = yield* Membership
      const { publish } = yield* Invalidation
      const storage = yield* RunnerStorage.RunnerStorage
      yield* storage.register(Runner.make({ address: other, groups: ["default"], weight: 1 }), true)
      yield* publish({ kind: "runners", id: "host:2 host:1 silent" })
      assert.isTrue(isSelfEvicted())
      yield* TestClock.adjust("1 seconds")
      assert.isFalse(isSelfEvicted())
    }).pipe(
      Effect.provide(
        HealthMonitor.pipe(
          Layer.provideMerge(node),
          Layer.provideMerge(RunnerStorage.layerMemory),
          Layer.provide([
            Layer.succeed(
              FailureDetector,
              FailureDetector.of({ of: () => Effect.succeed("gone") })
            ),
            ShardingConfig.layer({ runnerAddress: Option.some(self) })
          ])
        )
      )
    )
  )

  it.effect("evicts the runner that receives it about itself", () =>
    Effect.gen(function* () {
      const { isSelfEvicted } = yield* Membership
      const { publish } = yield* Invalidation
      yield* publish({ kind: "runners", id: "" })
      assert.isFalse(isSelfEvicted())
      yield* publish({ kind: "runners", id: "host:2 host:1 silent" })
      assert.isTrue(isSelfEvicted())
    }).pipe(Effect.provide(node))
  )
})

describe("runners that monitor each other", () => {
  /** Runs runners on ports from 1 with the given observations; returns those that are marked dead. */
  const monitor = Effect.fnUntraced(function* (
    count: number,
    statusOf: (self: number, other: number) => "answers" | "silent" | "gone"
  ) {
    const addresses = Array.from({ length: count }, (_, i) => RunnerAddress.make("host", i + 1))
    const storage = yield* RunnerStorage.makeMemory
    const channel = makeInvalidation()
    const dead: Array<number> = []
    for (const address of addresses) {
      yield* storage.register(Runner.make({ address, groups: ["default"], weight: 1 }), true)
    }
    const reporting = RunnerStorage.RunnerStorage.of({
      ...storage,
      setRunnerHealth: (address, healthy) => {
        dead.push(address.port)
        return storage.setRunnerHealth(address, healthy)
      }
    })
    for (const address of addresses) {
      const of = (other: RunnerAddress.RunnerAddress) =>
        Effect.succeed(statusOf(address.port, other.port))
      yield* Layer.build(
        HealthMonitor.pipe(
          Layer.provide(MembershipLive),
          Layer.provide([
            Layer.succeed(Invalidation, channel),
            Layer.succeed(RunnerStorage.RunnerStorage, reporting),
            Layer.succeed(FailureDetector, FailureDetector.of({ of })),
            ShardingConfig.layer({ runnerAddress: Option.some(address) })
          ])
        )
      )
    }
    return dead
  })

  const partition13 = (self: number, other: number) =>
    Math.min(self, other) === 1 && Math.max(self, other) === 3 ? "silent" : "answers"

  it.effect("mark one of two dead that have lost each other, once", () =>
    Effect.gen(function* () {
      const dead = yield* monitor(3, partition13)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(dead, [3])
    }).pipe(Effect.scoped)
  )

  it.effect("mark nobody dead when only one direction of one pair is silent", () =>
    Effect.gen(function* () {
      const dead = yield* monitor(5, (self, other) =>
        self === 1 && other === 3 ? "silent" : "answers"
      )
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(dead, [])
    }).pipe(Effect.scoped)
  )

  it.effect("mark a runner dead at once when its machine refuses connections", () =>
    Effect.gen(function* () {
      const dead = yield* monitor(3, (_, other) => (other === 2 ? "gone" : "answers"))
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(dead, [2])
    }).pipe(Effect.scoped)
  )

  it.effect("ignore the reports of a runner that reaches nobody", () =>
    Effect.gen(function* () {
      const dead = yield* monitor(4, (self, other) =>
        self === 1 || other === 1 ? "silent" : "answers"
      )
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(new Set(dead), new Set([1]))
    }).pipe(Effect.scoped)
  )
})
