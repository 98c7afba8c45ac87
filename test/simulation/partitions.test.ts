/**
 * Partitions of a simulated cluster of 5 runners, in the long form also of 12 and 40, that all reach
 * Postgres. A group with more than half of the runners goes on and the others are evicted; without such
 * a group nobody is.
 *
 * `SVC_SIMULATION_SEED=7 npx vitest run --project simulation partitions` takes another seed.
 */
import { assert, describe, it } from "@effect/vitest"
import { Config, Effect, Redacted } from "effect"
import { inject } from "vitest"
import { PartitionedCluster } from "./partitions.ts"
import { openDatabase } from "./postgres.ts"
import type { Runner } from "./runner.ts"

const settleMillis = 4000
const partitionMillis = 20_000
const healMillis = 10_000

interface Scenario {
  readonly name: string
  /** Only the long form runs it. */
  readonly isLong?: boolean
  readonly inflict: (cluster: PartitionedCluster) => void
  /** Indexes of the runners that are evicted. */
  readonly evicted: (size: number) => ReadonlyArray<number>
}

/** The group of each runner. Neighbours in the order of addresses are in different groups. */
type Groups = (index: number, size: number) => number

const halves: Groups = (index) => index % 2
const zones: Groups = (index) => index % 3
/** More than half, but not by far: 4 of 5, 7 of 12, 25 of 40. */
const majority: Groups = (index, size) => (((index * 7) % size) / size < 0.61 ? 0 : 1)
/** A majority, and two smaller groups. */
const majorityOfThree: Groups = (index, size) => majority(index, size) * (1 + (index % 2))

const pairs = ({ runners }: PartitionedCluster) =>
  runners.flatMap((a, i) => runners.slice(i + 1).map((b, j) => [a, b, i, i + 1 + j] as const))

const split =
  (groups: Groups) =>
  (cluster: PartitionedCluster): void => {
    const { length } = cluster.runners
    for (const [a, b, i, j] of pairs(cluster)) {
      if (groups(i, length) !== groups(j, length)) cluster.network.cut(a.process, b.process)
    }
  }

const oneWay =
  (groups: Groups) =>
  (cluster: PartitionedCluster): void => {
    const { length } = cluster.runners
    for (const [a, b, i, j] of pairs(cluster)) {
      const [first, second] = [groups(i, length), groups(j, length)]
      if (first < second) cluster.network.cutOneWay(a.process, b.process)
      if (second < first) cluster.network.cutOneWay(b.process, a.process)
    }
  }

/** Everyone outside a group that holds more than half. */
const minority =
  (groups: Groups) =>
  (size: number): ReadonlyArray<number> => {
    const all = Array.from({ length: size }, (_, i) => i)
    const members = Map.groupBy(all, (i) => groups(i, size))
    const winner = Array.from(members.values()).find(({ length }) => length * 2 > size)
    return winner === undefined ? [] : all.filter((i) => !winner.includes(i))
  }

const first = ({ runners: [runner] }: PartitionedCluster): Runner => {
  if (runner === undefined) throw new Error("The cluster is empty")
  return runner
}

const withSecond =
  (inflict: (cluster: PartitionedCluster, a: Runner, b: Runner) => void) =>
  (cluster: PartitionedCluster): void => {
    const second = cluster.runners[1]
    if (second !== undefined) inflict(cluster, first(cluster), second)
  }

const none = () => []

const sizes = { short: [5], long: [5, 12, 40] }

const scenarios: ReadonlyArray<Scenario> = [
  { name: "two halves", inflict: split(halves), evicted: minority(halves) },
  { name: "three zones", isLong: true, inflict: split(zones), evicted: minority(zones) },
  { name: "a majority", inflict: split(majority), evicted: minority(majority) },
  {
    name: "a majority and two groups",
    isLong: true,
    inflict: split(majorityOfThree),
    evicted: minority(majorityOfThree)
  },
  {
    name: "a majority, one way",
    isLong: true,
    inflict: oneWay(majority),
    evicted: minority(majority)
  },
  {
    name: "one runner that nobody hears",
    inflict: (cluster) => {
      const { process } = first(cluster)
      for (const other of cluster.runners) cluster.network.cutOneWay(process, other.process)
    },
    evicted: () => [0]
  },
  {
    name: "two runners that lose each other",
    isLong: true,
    inflict: withSecond(({ network }, a, b) => network.cut(a.process, b.process)),
    evicted: none
  },
  {
    name: "one runner that refuses another",
    inflict: withSecond(({ network }, a, b) => network.refuse(a.process, b.process)),
    evicted: none
  }
]

/** Runs all scenarios in a row on one cluster; returns what was wrong. */
const run = async (
  cluster: PartitionedCluster,
  form: keyof typeof sizes
): Promise<ReadonlyArray<string>> => {
  const wrong: Array<string> = []
  const { runners, simulator } = cluster
  const isOwnedOnce = () => cluster.owners().every(({ length }) => length === 1)
  await cluster.pass(settleMillis)
  cluster.report()
  if (!isOwnedOnce()) wrong.push("the cluster does not come up")
  for (const { evicted, inflict, isLong = false, name } of scenarios) {
    if (isLong && form === "short") continue
    const expected = evicted(runners.length).map((i) => runners[i]?.name ?? "")
    const before = cluster.owners()
    inflict(cluster)
    await cluster.pass(partitionMillis)
    const during = cluster.report()
    cluster.network.heal()
    await cluster.pass(healMillis)
    const after = cluster.report()
    const check = (holds: boolean, what: string): void => {
      if (!holds) wrong.push(`${name}: ${what}`)
    }
    check(
      during.opinions.every((names) => String(names) === String(expected)),
      "the runners disagree on who is evicted, or evict others than expected"
    )
    check(
      during.owners.every(
        (owners, i) =>
          owners.length === 1 &&
          !expected.includes(owners[0] ?? "") &&
          (expected.length > 0 || owners[0] === before[i]?.[0])
      ),
      "not every shard has one owner that stays"
    )
    check(during.mostChanges <= 1 && after.mostChanges <= 1, "a verdict changes to and fro")
    check(
      after.opinions.every(({ length }) => length === 0),
      "not all are back"
    )
    check(isOwnedOnce(), "not every shard has one owner after the partition")
  }
  return [...wrong, ...simulator.faults]
}

const stepMillis = 600_000
/** The links have closed and wait to open again. */
const backOffMillis = 30
/** Most of the requests of five clients, one a second each for ten seconds. */
const stepReplies = 30

describe("a partitioned cluster", { timeout: 1_800_000 }, () => {
  it.live.each(sizes[inject("form")])(
    "keeps the majority of %i partitioned runners, and all return",
    (size) =>
      Effect.gen(function* () {
        const seed = yield* Config.withDefault(Config.Int("SVC_SIMULATION_SEED"), size)
        const database = yield* openDatabase(Redacted.make(inject("postgres")))
        const cluster = new PartitionedCluster(seed, size, database)
        const wrong = yield* Effect.promise(() => run(cluster, inject("form")))
        cluster.end()
        assert.deepStrictEqual(wrong, [])
      }).pipe(Effect.scoped)
  )

  it.live(
    "keeps the owners and links of a cluster when the time of day steps back and forward",
    () =>
      Effect.gen(function* () {
        const database = yield* openDatabase(Redacted.make(inject("postgres")))
        const cluster = new PartitionedCluster(1, 5, database)
        yield* Effect.promise(async () => {
          await cluster.pass(settleMillis)
          const before = cluster.owners()
          cluster.report()
          for (const step of [-stepMillis, stepMillis]) {
            for (const [a, b] of pairs(cluster)) cluster.network.reset(a.process, b.process)
            await cluster.simulator.pass(backOffMillis)
            for (const { process } of cluster.runners) process.clockOffset += step
            await cluster.pass(healMillis)
            assert.isTrue(cluster.areLinksAlive())
            const { counts, mostChanges, owners } = cluster.report()
            assert.deepStrictEqual(owners, before)
            assert.strictEqual(mostChanges, 0)
            assert.isAtLeast(counts["ok"] ?? 0, stepReplies)
          }
        })
        cluster.end()
        assert.deepStrictEqual(cluster.simulator.faults, [])
      }).pipe(Effect.scoped)
  )
})
