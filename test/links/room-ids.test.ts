/** Ids of new rooms: near the players when a runner can be near, and spread over its shards. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, HashRing } from "effect"
import { EntityId, RunnerAddress, type ShardId, Sharding, TestRunner } from "effect/cluster"
import { SecureRandom } from "effect/crypto"
import { RoomId } from "#rpc/ids"
import { idTriesMax, localRoomId } from "#server/links/room-ids"

const shardCount = 300
const perRunner = 200

/** Assigns the shards to this many runners, as the cluster does. */
const assign = (runners: number): ReadonlyArray<string> => {
  const ring = HashRing.make<RunnerAddress.RunnerAddress>()
  for (let i = 1; i <= runners; i++) HashRing.add(ring, RunnerAddress.make(`10.0.0.${i}`, 34431))
  return (HashRing.getShards(ring, shardCount) ?? []).map(({ host }) => host)
}

/** Draws ids on a node that owns the shards for which `owns` holds. */
const drawOn = (owns: (shard: ShardId.ShardId) => boolean, count: number) =>
  Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding
    let asked = 0
    const draw = yield* Effect.provideService(localRoomId, Sharding.Sharding, {
      ...sharding,
      hasShardId: (shard) => {
        asked += 1
        return owns(shard)
      }
    })
    const ids = yield* Effect.all(Array.from({ length: count }, () => draw))
    const shards = ids.map((id) => sharding.getShardId(EntityId.make(id), "default").id)
    return { ids, shards, asked }
  })

const run = <A, E>(effect: Effect.Effect<A, E, Sharding.Sharding | SecureRandom.SecureRandom>) =>
  effect.pipe(Effect.provide(TestRunner.layer), Effect.provide(SecureRandom.layerWebCrypto))

describe("the id of a new room", () => {
  for (const runners of [2, 8]) {
    it.live(`draws room ids that map to shards of the drawing node, of ${runners} runners`, () =>
      run(
        Effect.gen(function* () {
          const owners = assign(runners)
          for (const host of new Set(owners)) {
            const drawn = yield* drawOn((shard) => owners[shard.id - 1] === host, perRunner)
            const here = drawn.shards.filter((shard) => owners[shard - 1] === host).length
            assert.isAtLeast(here, perRunner * 0.98, host)
            assert.isAbove(new Set(drawn.shards).size, (shardCount / runners) * 0.5, "spread")
            assert.strictEqual(new Set(drawn.ids).size, perRunner)
          }
        })
      )
    )
  }

  it.live("takes any room id on a node that owns no shards, after a bounded number of draws", () =>
    run(
      Effect.gen(function* () {
        const { asked, ids, shards } = yield* drawOn(() => false, perRunner)
        for (const id of ids) assert.strictEqual(RoomId.make(id), id)
        assert.isAbove(new Set(shards).size, shardCount / 4)
        assert.isAtMost(asked, perRunner * idTriesMax)
      })
    )
  )

  it.live("takes the first room id drawn on a node that owns all shards", () =>
    run(
      Effect.gen(function* () {
        const { asked, ids } = yield* drawOn(() => true, perRunner)
        assert.strictEqual(asked, ids.length)
      })
    )
  )
})
