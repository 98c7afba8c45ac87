/**
 * The cluster: where entities live. One process alone keeps everything in itself; with
 * `SVC_RUNNER_HOST` and `SVC_RUNNER_PORT` it joins the other runners on the same Postgres, and shards
 * move between them when one comes, goes or dies (design section 5).
 */
import { Effect, Fiber, Layer, Option, Scope } from "effect"
import {
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerServer,
  RunnerStorage,
  ShardId,
  Sharding,
  ShardingConfig,
  SqlRunnerStorage
} from "effect/cluster"
import { RpcSerialization, RpcServer } from "effect/rpc"
import type { SocketServer } from "effect/socket"
import type { SqlClient } from "effect/sql"
import type { LocalRooms } from "#entities/room/entity"
import type { NodeFlush } from "#server/platform/flush"
import { Invalidation } from "#server/platform/invalidation"
import { Settings } from "#server/platform/settings/settings"
import { HealthLive, FailureDetectorLive, HealthMonitor } from "./health.ts"
import { LockSessionLive } from "./lock-session.ts"
import { MembershipLive } from "./membership.ts"
import { Readiness } from "./readiness.ts"
import { RunnerCache } from "./runner-cache.ts"
import { ClientProtocol } from "./runner-client.ts"
import { RunnerLinksLive } from "./runner-links.ts"
import { runnerServerLayer } from "./runner-server.ts"
import { HandoverStorage } from "./shard-locks.ts"

/**
 * Intervals for hand-over within seconds. The lock of a runner that froze ends with its database
 * session after `shardLockExpiration`; entities stop well before another runner may start them. What
 * a runner does to its locks has to be done within a refresh interval, and takes two statements one
 * after the other: that is how slow the database may be without costing the runner its shards. A runner
 * that could not lock shards asks again after `entityMessagePollInterval` (no messages are stored here),
 * before the new database session it has for that ends, too.
 */
export const shardingTimings = {
  simulateRemoteSerialization: false,
  maxResidentEntities: 200_000,
  refreshAssignmentsInterval: 100,
  runnerHealthCheckInterval: 1000,
  shardLockRefreshInterval: 1600,
  shardLockExpiration: 5000,
  entityTerminationTimeout: 1500,
  entityMessagePollInterval: 1000,
  sendRetryInterval: 50
} as const

const singleNode = Sharding.layer.pipe(
  Layer.provideMerge(Runners.layerNoop),
  Layer.provide([MessageStorage.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(ShardingConfig.layer(shardingTimings))
)

/** The cluster's own calls. */
const RunnerCalls = RpcServer.layer(Runners.Rpcs, {
  spanPrefix: "RunnerServer",
  disableTracing: true,
  disableFatalDefects: true
}).pipe(Layer.provide(RunnerServer.layerHandlers))

/** How long the calls of other runners may take to end, before this one stops without that. */
const callsCloseMillis = 300

/**
 * The same layer; what hangs while it closes is left behind. A call whose answer goes to a connection
 * that broke while the process was frozen never ends.
 */
const closedWithin = <A, E, R>(layer: Layer.Layer<A, E, R>, millis: number) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* Effect.addFinalizer((exit) =>
        Scope.close(scope, exit).pipe(
          Effect.forkDetach({ startImmediately: true }),
          Effect.flatMap(Fiber.await),
          Effect.timeoutOption(millis)
        )
      )
      return yield* Layer.buildWithScope(layer, scope)
    })
  )

/** A runner among others, over whatever wires, list of runners and hearing it is given. */
export const RunnerLive = Layer.mergeAll(
  closedWithin(RunnerCalls, callsCloseMillis),
  HealthMonitor
).pipe(
  Layer.provideMerge(Sharding.layer),
  Layer.provide(HealthLive),
  Layer.provideMerge(MembershipLive),
  Layer.provideMerge(Runners.layerRpc),
  Layer.provide(RpcServer.layerProtocolSocketServer)
)

const StorageLive = HandoverStorage.pipe(
  Layer.provide(RunnerCache),
  Layer.provide(Layer.orDie(SqlRunnerStorage.layer)),
  Layer.provide(LockSessionLive)
)

const multiNode = (host: string, port: number, shardGroups: ReadonlyArray<string>) =>
  RunnerLive.pipe(
    Layer.provide(FailureDetectorLive.pipe(Layer.provide(Runners.layerRpc))),
    Layer.provideMerge(RunnerLinksLive),
    Layer.provide([runnerServerLayer(host, port), ClientProtocol]),
    Layer.provide(MessageStorage.layerNoop),
    Layer.provideMerge(StorageLive),
    Layer.provide(
      ShardingConfig.layer({
        ...shardingTimings,
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

type ClusterLayer = Layer.Layer<
  Sharding.Sharding,
  SocketServer.SocketServerError,
  LocalRooms | NodeFlush | Invalidation | SqlClient.SqlClient
>

/** Sharding as the settings want it. */
export const ClusterLive = Layer.unwrap(
  Effect.map(Settings, ({ runner }): ClusterLayer =>
    runner === undefined ? singleNode : multiNode(runner.host, runner.port, runner.shardGroups)
  )
)
