/** Shard locks in a real Postgres: releases many in one statement. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer, Option, Redacted } from "effect"
import { RunnerAddress, RunnerStorage, ShardId, ShardingConfig } from "effect/cluster"
import { inject } from "vitest"
import { poolLayer } from "#sql/database"
import { PostgresStorage } from "#server/cluster/shard-locks"
import { Settings } from "#server/platform/settings/settings"
import { cloneDatabase } from "#testing/database"

const SettingsLive = Settings.layer.pipe(
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: {} }))),
  Layer.provide(NodeServices.layer)
)

/** A runner's storage, with its own connections. */
const storageOf = (url: Redacted.Redacted, address: RunnerAddress.RunnerAddress) =>
  Effect.map(
    Layer.build(
      Layer.fresh(
        PostgresStorage.pipe(
          Layer.provide(ShardingConfig.layer({ runnerAddress: Option.some(address) })),
          Layer.provide(poolLayer({ url, connections: 3 })),
          Layer.provide(SettingsLive)
        )
      )
    ),
    (context) => {
      const storage = Context.get(context, RunnerStorage.RunnerStorage)
      return {
        ...storage,
        releaseTogether: (released: ReadonlyArray<ShardId.ShardId>) =>
          Effect.forEach(released, (shard) => storage.release(address, shard), {
            concurrency: "unbounded",
            discard: true
          })
      }
    }
  )

const shards = [1, 2, 3, 4, 5].map((id) => ShardId.make("default", id))
const some = shards.slice(0, 3)
const names = (of: ReadonlyArray<ShardId.ShardId>) => of.map(String).toSorted()

describe("a runner's lock session", () => {
  it.live("releases exactly the given shards", () =>
    Effect.gen(function* () {
      const url = yield* cloneDatabase(Redacted.make(inject("postgres")))
      const [one, two] = [RunnerAddress.make("host", 1), RunnerAddress.make("host", 2)]
      const storage = yield* storageOf(url, one)
      const other = yield* storageOf(url, two)
      assert.deepStrictEqual(names(yield* storage.acquire(one, shards)), names(shards))
      assert.deepStrictEqual(names(yield* other.acquire(two, shards)), [])
      yield* storage.releaseTogether(some)
      assert.deepStrictEqual(names(yield* other.acquire(two, shards)), names(some))
      yield* storage.releaseTogether(some)
      assert.deepStrictEqual(names(yield* storage.refresh(one, shards)), names(shards.slice(3)))
    }).pipe(Effect.scoped)
  )

  it.live("releases shards that two acquisitions at once have locked twice", () =>
    Effect.gen(function* () {
      const url = yield* cloneDatabase(Redacted.make(inject("postgres")))
      const [one, two] = [RunnerAddress.make("host", 1), RunnerAddress.make("host", 2)]
      const storage = yield* storageOf(url, one)
      const other = yield* storageOf(url, two)
      const acquire = storage.acquire(one, shards)
      yield* Effect.all([acquire, acquire], { concurrency: 2 })
      yield* storage.releaseTogether(some)
      assert.deepStrictEqual(names(yield* other.acquire(two, shards)), names(some))
    }).pipe(Effect.scoped)
  )
})
