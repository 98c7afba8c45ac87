/**
 * A stall of Postgres in a simulated cluster: all runners lose their shard locks together. Afterwards
 * each shard gets its owner back at once: no runner takes the shards of others who are merely late to
 * report.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { PartitionedCluster } from "./partitions.ts"
import { openDatabase } from "./postgres.ts"

const settleMillis = 4000
/** The phase of a stall within an interval of the lock refresh is a matter of chance. */
const phaseMillis = 530
const returnMillis = 12_000
const lookMillis = 50
const stallsMillis = [3000, 4500, 7000]

/** Looks at the owners of all shards all the time; returns each shard's owners in their order. */
const watch = async (cluster: PartitionedCluster, millis: number) => {
  const orders = cluster.owners().map(() => new Array<string>())
  for (let passed = 0; passed < millis; passed += lookMillis) {
    await cluster.simulator.pass(lookMillis)
    for (const [shard, owners] of cluster.owners().entries()) {
      const order = orders[shard]
      const now = owners.join(" and ") || "-"
      if (order !== undefined && order.at(-1) !== now) order.push(now)
    }
  }
  return orders
}

describe("a simulated cluster after a stall of Postgres", { timeout: 1_800_000 }, () => {
  it.live(
    "gives each shard back to its owner after a stall of Postgres, and to nobody else meanwhile",
    () =>
      Effect.gen(function* () {
        const database = yield* openDatabase(Redacted.make(inject("postgres")))
        const cluster = new PartitionedCluster(1, 5, database)
        yield* Effect.promise(async () => {
          await cluster.pass(settleMillis)
          for (const millis of stallsMillis) {
            await cluster.simulator.pass(phaseMillis)
            const before = cluster.owners()
            cluster.database.turn("silent")
            await cluster.simulator.pass(millis)
            cluster.database.turn("fine")
            const orders = await watch(cluster, returnMillis)
            const strays = orders.flatMap((order, shard) => {
              const owner = before[shard]?.[0] ?? ""
              const rightly =
                order.at(-1) === owner && order.every((at) => at === "-" || at === owner)
              const once = order.filter((at) => at === owner).length === 1
              return rightly && once ? [] : [`shard ${shard} of ${owner}: ${order.join(", ")}`]
            })
            assert.deepStrictEqual(strays, [], `after a stall of ${millis} ms`)
          }
        })
        cluster.end()
        assert.deepStrictEqual(cluster.simulator.faults, [])
      }).pipe(Effect.scoped)
  )
})
