/** Which runners are evicted when runners do not reach each other, and when. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { RunnerAddress, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { type Exchange, RunnerReports } from "#sql/runners"
import { type Change, Invalidation } from "#server/platform/invalidation"
import { evictedRunners, Membership, MembershipLive } from "#server/cluster/membership"
import { PeerRunners } from "#server/cluster/runner-links"

type Cut = readonly [by: number, of: number]

/** The reports of so many runners, of which some do not reach others. */
const reportsOf = (size: number, cuts: ReadonlyArray<Cut>) =>
  Array.from({ length: size }, (_, i) => ({
    address: `r${i}`,
    unreachable: cuts.flatMap(([by, of]) => (by === i ? [`r${of}`] : []))
  }))

const evicted = (size: number, cuts: ReadonlyArray<Cut>): ReadonlyArray<string> =>
  Array.from(evictedRunners(reportsOf(size, cuts))).toSorted()

/** Cuts between all runners of different groups. */
const between = (groups: ReadonlyArray<number>): ReadonlyArray<Cut> =>
  groups.flatMap((a, i) => groups.flatMap((b, j): ReadonlyArray<Cut> => (a === b ? [] : [[i, j]])))

const anyView = fc.integer({ min: 1, max: 9 }).chain((size) => {
  const index = fc.nat({ max: size - 1 })
  const cuts = fc.array(fc.tuple(index, index), { maxLength: size * size })
  return fc.record({ size: fc.constant(size), cuts })
})

const anyGroups = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 12 })

describe("the verdict", () => {
  it.for([
    ["the smaller of two groups", [0, 1, 0, 1, 0], ["r1", "r3"]],
    ["all outside the majority of three groups", [0, 1, 0, 2, 0], ["r1", "r3"]],
    ["nobody of two halves", [0, 1, 0, 1], []],
    ["nobody of three zones", [0, 1, 2, 0, 1, 2], []],
    ["nobody of two runners", [0, 1], []]
  ] as const)("evicts %s", ([, groups, expected]) => {
    assert.deepStrictEqual(evicted(groups.length, between(groups)), expected)
  })

  it("evicts nobody while a third runner reaches two that have lost each other", () => {
    assert.deepStrictEqual(evicted(3, [[0, 1]]), [])
  })

  it("evicts a runner that nobody reaches, whatever it reports", () => {
    const others: ReadonlyArray<Cut> = [
      [0, 3],
      [1, 3],
      [2, 3]
    ]
    assert.deepStrictEqual(evicted(4, others), ["r3"])
    assert.deepStrictEqual(evicted(4, [...others, ...others.map(([a, b]): Cut => [b, a])]), ["r3"])
  })

  it("evicts all outside a group of more than half, and nobody without one", () => {
    fc.assert(
      fc.property(anyGroups, (groups) => {
        const majority = groups.find(
          (group) => groups.filter((other) => other === group).length * 2 > groups.length
        )
        const expected = groups.flatMap((group, i) =>
          majority === undefined || group === majority ? [] : [`r${i}`]
        )
        assert.deepStrictEqual(evicted(groups.length, between(groups)), expected.toSorted())
      })
    )
  })

  it("draws one verdict from reports in any order and from either of two runners", () => {
    fc.assert(
      fc.property(anyView, ({ cuts, size }) => {
        const verdict = evicted(size, cuts)
        const reversed = evictedRunners(reportsOf(size, cuts).toReversed())
        assert.deepStrictEqual(Array.from(reversed).toSorted(), verdict)
        assert.deepStrictEqual(
          evicted(
            size,
            cuts.map(([by, of]): Cut => [of, by])
          ),
          verdict
        )
      })
    )
  })

  it("evicts neither of two runners for reaching each other again", () => {
    fc.assert(
      fc.property(anyView, fc.nat(), ({ cuts, size }, pick) => {
        const healed = cuts[pick % Math.max(1, cuts.length)]
        if (healed === undefined) return
        const [a, b] = healed
        const rest = cuts.filter(([by, of]) => !((by === a && of === b) || (by === b && of === a)))
        const before = evicted(size, cuts)
        const after = evicted(size, rest)
        for (const name of [`r${a}`, `r${b}`]) {
          if (!before.includes(name)) assert.notInclude(after, name)
        }
        if (before.length > 0) for (const name of after) assert.include(before, name)
      })
    )
  })

  it("always leaves more than half of the runners", () => {
    fc.assert(
      fc.property(anyView, ({ cuts, size }) => {
        assert.isBelow(evicted(size, cuts).length * 2, size)
      })
    )
  })
})

/** One of three runners, with the reports of the others and the links to them under control. */
const makeNode = () => {
  const silent = new Set<number>()
  const absent = new Set<string>()
  const unreachable = new Map<string, ReadonlyArray<string>>()
  const requests: Array<Exchange> = []
  const published: Array<Change> = []
  const others = ["host:2", "host:3"]
  const layer = MembershipLive.pipe(
    Layer.provide([
      Layer.succeed(
        RunnerReports,
        RunnerReports.of({
          exchange: (request) =>
            Effect.sync(() => {
              requests.push(request)
              return others.map((address) => ({
                address,
                unreachable: unreachable.get(address) ?? [],
                isPresent: !absent.has(address)
              }))
            }),
          remove: () => Effect.void
        })
      ),
      Layer.succeed(PeerRunners, PeerRunners.of({ isAlive: ({ port }) => !silent.has(port) })),
      Layer.succeed(
        Invalidation,
        Invalidation.of({
          publish: (change) => Effect.sync(() => void published.push(change)),
          subscribe: () => Effect.void,
          awaitAcknowledgements: Effect.void
        })
      ),
      ShardingConfig.layer({ runnerAddress: Option.some(RunnerAddress.make("host", 1)) })
    ])
  )
  return { silent, absent, unreachable, requests, published, layer }
}

const second = RunnerAddress.make("host", 2)

describe("a runner's membership", () => {
  it.effect("reports a runner after 0.8 seconds of silence, until it has replied for three", () => {
    const { layer, requests, silent } = makeNode()
    return Effect.gen(function* () {
      yield* Membership
      const reported = () => requests.at(-1)?.unreachable
      silent.add(2)
      yield* TestClock.adjust("600 millis")
      assert.deepStrictEqual(reported(), [])
      yield* TestClock.adjust("200 millis")
      assert.deepStrictEqual(reported(), ["host:2"])
      silent.clear()
      yield* TestClock.adjust("2800 millis")
      assert.deepStrictEqual(reported(), ["host:2"])
      yield* TestClock.adjust("700 millis")
      assert.deepStrictEqual(reported(), [])
    }).pipe(Effect.provide(layer))
  })

  it.effect("takes a silent runner for gone within 0.2 seconds of the end of its session", () => {
    const { absent, layer, published, silent } = makeNode()
    return Effect.gen(function* () {
      const { isEvicted } = yield* Membership
      silent.add(2)
      absent.add("host:2")
      yield* TestClock.adjust("200 millis")
      assert.isTrue(isEvicted(second))
      assert.deepStrictEqual(published, [{ kind: "runners", id: "" }])
      silent.clear()
      yield* TestClock.adjust("500 millis")
      assert.isFalse(isEvicted(second))
    }).pipe(Effect.provide(layer))
  })

  it.effect("takes no runner for gone on the word of one witness", () => {
    const { absent, layer, silent } = makeNode()
    return Effect.gen(function* () {
      const { isEvicted, isSelfEvicted } = yield* Membership
      silent.add(2)
      yield* TestClock.adjust("1 minute")
      assert.isFalse(isEvicted(second))
      silent.clear()
      yield* TestClock.adjust("5 seconds")
      absent.add("host:2").add("host:3")
      yield* TestClock.adjust("1 minute")
      assert.isFalse(isEvicted(second))
      assert.isFalse(isSelfEvicted())
    }).pipe(Effect.provide(layer))
  })

  it.effect("evicts itself once both others have reported it for 1.5 seconds", () => {
    const { layer, unreachable } = makeNode()
    return Effect.gen(function* () {
      const { isSelfEvicted } = yield* Membership
      unreachable.set("host:2", ["host:1"])
      yield* TestClock.adjust("1 minute")
      assert.isFalse(isSelfEvicted())
      unreachable.set("host:3", ["host:1"])
      yield* TestClock.adjust("1500 millis")
      assert.isFalse(isSelfEvicted())
      yield* TestClock.adjust("500 millis")
      assert.isTrue(isSelfEvicted())
      unreachable.clear()
      yield* TestClock.adjust("500 millis")
      assert.isFalse(isSelfEvicted())
    }).pipe(Effect.provide(layer))
  })
})
