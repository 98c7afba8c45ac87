/**
 * The cluster: where entities live. One process alone keeps everything in itself; with
 * `SVC_RUNNER_HOST` and `SVC_RUNNER_PORT` it joins the other runners on the same Postgres, and shards
 * move between them when one comes, goes or dies (design section 5).
 */
import { NodeClusterSocket } from "@effect/platform-node"
import { Effect, Layer, Option } from "effect"
import {
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerStorage,
  ShardId,
  Sharding,
  ShardingConfig,
  SocketRunner,
  SqlRunnerStorage
} from "effect/cluster"
import { RpcSerialization } from "effect/rpc"
import { Settings } from "./settings.ts"
import { Readiness } from "./system.ts"

/**
 * Intervals for hand-over within seconds. The lock of a runner that froze ends with its database
 * session after `shardLockExpiration`; entities stop well before another runner may start them.
 */
const pace = {
  simulateRemoteSerialization: false,
  maxResidentEntities: 200_000,
  refreshAssignmentsInterval: 250,
  runnerHealthCheckInterval: 500,
  shardLockRefreshInterval: 1000,
  shardLockExpiration: 5000,
  entityTerminationTimeout: 2000,
  sendRetryInterval: 50
} as const

const alone = Sharding.layer.pipe(
  Layer.provideMerge(Runners.layerNoop),
  Layer.provide([MessageStorage.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(ShardingConfig.layer(pace))
)

/** A runner that does not answer two pings within a second is dead. */
const healthByPing = Layer.effect(
  RunnerHealth.RunnerHealth,
  Effect.map(Runners.Runners, (runners) =>
    RunnerHealth.RunnerHealth.of({
      isAlive: (address) =>
        runners
          .ping(address)
          .pipe(Effect.timeout(500), Effect.retry({ times: 1 }), Effect.isSuccess)
    })
  )
)

const together = (host: string, port: number, shardGroups: ReadonlyArray<string>) =>
  SocketRunner.layer.pipe(
    Layer.provide(healthByPing.pipe(Layer.provide(Runners.layerRpc))),
    Layer.provide([NodeClusterSocket.layerSocketServer, NodeClusterSocket.layerClientProtocol]),
    Layer.provide([MessageStorage.layerNoop, Layer.orDie(SqlRunnerStorage.layer)]),
    Layer.provide(
      ShardingConfig.layer({
        ...pace,
        runnerAddress: Option.some(RunnerAddress.make(host, port)),
        ...(shardGroups.length === 0 ? {} : { assignedShardGroups: shardGroups })
      })
    ),
    Layer.provide(RpcSerialization.layerSchemaBinary())
  )

const shardsPerGroup = ShardingConfig.defaults.shardsPerGroup

/** Whether this runner has its share of the shards, and keeps them. */
export const ReadinessLive = Layer.effect(
  Readiness,
  Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding
    const { runner } = yield* Settings
    const groups =
      runner === undefined || runner.shardGroups.length === 0 ? ["default"] : runner.shardGroups
    const shards = groups.flatMap((group) =>
      Array.from({ length: shardsPerGroup }, (_, i) => ShardId.make(group, i + 1))
    )
    return Readiness.of({
      shards: Effect.sync(() => shards.some((shard) => sharding.hasShardId(shard))),
      draining: sharding.isShutdown
    })
  })
)

/** Sharding as the settings want it. */
export const ClusterLive = Layer.unwrap(
  Effect.map(Settings, ({ runner }) =>
    runner === undefined ? alone : together(runner.host, runner.port, runner.shardGroups)
  )
)
