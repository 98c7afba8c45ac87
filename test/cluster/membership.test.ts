/** Who is out when runners do not hear each other, and for how long (see `src/cluster/suspicions.ts`). */
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

describe("of runners that do not hear each other", () => {
  it.for([
    ["one that nobody hears", "a>c b>c", "c"],
    ["one of two that have lost each other", "a>b b>a", "b"],
    ["the same one of three", "a>c c>a", "c"],
    ["the one that has lost all others, whatever it says of them", "a>b a>c b>a c>a", "a"],
    ["the one in the middle of a split", "a>b b>a b>c c>b", "b"],
    ["two that are gone for good", "a>b c>b a>d c>d", "b d"]
  ] as const)("%s is out", ([, told, out]) => {
    assert.deepStrictEqual(Array.from(evictedRunners(suspicions(told))).toSorted(), out.split(" "))
    assert.deepStrictEqual(
      Array.from(evictedRunners(suspicions(told).toReversed())).toSorted(),
      out.split(" ")
    )
  })
})

/** A channel on which everybody hears what anybody publishes. */
const everybodyHears = () => {
  const hearers: Array<(change: Change) => Effect.Effect<void>> = []
  return Invalidation.of({
    publish: (change) => Effect.forEach(hearers, (hear) => hear(change), { discard: true }),
    subscribe: (hear) => Effect.sync(() => void hearers.push(hear)),
    awaitAcknowledgements: Effect.void
  })
}

describe("a suspicion", () => {
  const [self, other] = [RunnerAddress.make("host", 1), RunnerAddress.make("host", 2)]
  const node = MembershipLive.pipe(
    Layer.provideMerge(Layer.sync(Invalidation, everybodyHears)),
    Layer.provide(ShardingConfig.layer({ runnerAddress: Option.some(self) }))
  )

  it.effect("ends when the other is heard, or when nobody repeats it", () =>
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

  it.effect("ends when whoever had it is gone", () =>
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

  it.effect("of others takes a runner out that hears them say so", () =>
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

describe("runners that watch each other", () => {
  /** Runners on ports from 1, and what the one hears of the other; those that are reported dead. */
  const watching = Effect.fnUntraced(function* (
    count: number,
    heard: (self: number, other: number) => "answers" | "silent" | "gone"
  ) {
    const addresses = Array.from({ length: count }, (_, i) => RunnerAddress.make("host", i + 1))
    const storage = yield* RunnerStorage.makeMemory
    const channel = everybodyHears()
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
        Effect.succeed(heard(address.port, other.port))
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

  const parted = (self: number, other: number) =>
    Math.min(self, other) === 1 && Math.max(self, other) === 3 ? "silent" : "answers"

  it.effect("report one of two that have lost each other, once", () =>
    Effect.gen(function* () {
      const dead = yield* watching(3, parted)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(dead, [3])
    }).pipe(Effect.scoped)
  )

  it.effect("believe whoever hears the one that does not hear it", () =>
    Effect.gen(function* () {
      const dead = yield* watching(5, (self, other) =>
        self === 1 && other === 3 ? "silent" : "answers"
      )
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(dead, [])
    }).pipe(Effect.scoped)
  )

  it.effect("do not wait for anybody's objection where nobody listens any more", () =>
    Effect.gen(function* () {
      const dead = yield* watching(3, (_, other) => (other === 2 ? "gone" : "answers"))
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(dead, [2])
    }).pipe(Effect.scoped)
  )

  it.effect("are not believed by anybody when they hear nobody", () =>
    Effect.gen(function* () {
      const dead = yield* watching(4, (self, other) =>
        self === 1 || other === 1 ? "silent" : "answers"
      )
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(new Set(dead), new Set([1]))
    }).pipe(Effect.scoped)
  )
})
