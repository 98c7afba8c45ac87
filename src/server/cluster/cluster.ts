/**
 * The cluster, which decides where entities live. A single process holds all of them in memory. With
 * `SVC_RUNNER_HOST` and `SVC_RUNNER_PORT` it joins the other runners on the same Postgres, and shards
 * move between runners when one joins, leaves or dies.
 */
import { Effect, Fiber, type FileSystem, Layer, Option, Scope } from "effect"
import {
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerServer,
  RunnerStorage,
  ShardId,
  Sharding,
  ShardingConfig
} from "effect/cluster"
import type { SecureRandom } from "effect/crypto"
import { RpcServer } from "effect/rpc"
import type { SocketServer } from "effect/socket"
import type { SqlClient } from "effect/sql"
import { RunnerReports } from "#sql/runners"
import { IdleMillis } from "#entities/idle-time"
import type { LocalRooms } from "#entities/room/entity"
import type { DatabaseStartError } from "#server/platform/database-start"
import type { NodeFlush } from "#server/platform/flush"
import { Invalidation } from "#server/platform/invalidation"
import type { Secrets } from "#server/platform/secrets"
import { Settings, type SettingsError } from "#server/platform/settings/settings"
import { ConnectionBudget } from "./connection-budget.ts"
import { LockDatabaseLive } from "./lock-database.ts"
import { MembershipLive } from "./membership.ts"
import { Readiness } from "./readiness.ts"
import { ClientProtocol, RunnersLive } from "./runner-client.ts"
import { LinkHandlers, LinkRpcs, RunnerLinksLive } from "./runner-links.ts"
import { runnerPortLayer } from "./runner-port.ts"
import { RunnerSerialization } from "./serialization.ts"
import { HandoverStorage, PostgresStorage } from "./shard-locks.ts"

/**
 * Intervals for hand-over within seconds.
 *
 * - The locks of a frozen runner end with its database session after `shardLockExpiration`. Entities
 *   stop well before another runner may start them.
 * - A runner must refresh its locks within a refresh interval, which takes two statements in sequence.
 *   A slower database costs the runner its shards.
 * - A runner that could not lock shards retries after `entityMessagePollInterval` (no messages are
 *   stored here), before its new database session ends.
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

/**
 * Runner list of a single node, which stays in it until its end. Without it, the engine would warn of "No
 * healthy runners" ten times a second while its entities stop.
 */
const SingleRunnerStorage = Layer.effect(
  RunnerStorage.RunnerStorage,
  Effect.map(RunnerStorage.makeMemory, (storage) =>
    RunnerStorage.RunnerStorage.of({ ...storage, unregister: () => Effect.void })
  )
)

/** Timings, and the address of a runner; a single node has that of the engine. */
const shardingConfig = (
  options: Partial<Pick<ShardingConfig.ShardingConfig["Service"], "runnerAddress">>
) =>
  Layer.unwrap(
    Effect.map(IdleMillis, (entityMaxIdleTime) =>
      ShardingConfig.layer({ ...shardingTimings, entityMaxIdleTime, ...options })
    )
  )

export const singleNode = Sharding.layer.pipe(
  Layer.provideMerge(Runners.layerNoop),
  Layer.provide([MessageStorage.layerNoop, SingleRunnerStorage, RunnerHealth.layerNoop]),
  Layer.provide(shardingConfig({}))
)

/** Server for the cluster's own RPC and for the batches of runner links. */
const RunnerRpc = RpcServer.layer(Runners.Rpcs.merge(LinkRpcs), {
  spanPrefix: "RunnerServer",
  disableTracing: true,
  disableFatalDefects: true
}).pipe(Layer.provide([RunnerServer.layerHandlers, LinkHandlers]))

/** Time for which a stopping runner waits for calls of other runners to end. */
const rpcCloseMillis = 300

/**
 * The same layer with a time limit on its release. A call whose reply goes to a connection that broke
 * while the process was frozen never ends.
 */
const withCloseTimeout = <A, E, R>(layer: Layer.Layer<A, E, R>, millis: number) =>
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

/**
 * A runner of a cluster, given a transport, runner storage and reports. The engine's own
 * health checks change nothing: {@link MembershipLive} decides who is healthy.
 */
export const RunnerLive = withCloseTimeout(RunnerRpc, rpcCloseMillis).pipe(
  Layer.provideMerge(Sharding.layer),
  Layer.provide(RunnerHealth.layerNoop),
  Layer.provideMerge(RunnersLive),
  Layer.provide(RpcServer.layerProtocolSocketServer),
  Layer.provideMerge(HandoverStorage),
  Layer.provideMerge(MembershipLive),
  Layer.provideMerge(RunnerLinksLive)
)

/** Runner list and shard locks. Nothing else uses their database. */
const StorageLive = Layer.provide(PostgresStorage, LockDatabaseLive)

const multiNode = (host: string, port: number) =>
  RunnerLive.pipe(
    Layer.merge(ConnectionBudget),
    Layer.provide([ClientProtocol, RunnerReports.layer]),
    Layer.provideMerge(runnerPortLayer(RunnerAddress.make(host, port))),
    Layer.provide(MessageStorage.layerNoop),
    Layer.provide(StorageLive),
    Layer.provide(shardingConfig({ runnerAddress: Option.some(RunnerAddress.make(host, port)) })),
    Layer.provide(RunnerSerialization)
  )

/** Shards of the default shard group, which has all entities. */
const shards = Array.from({ length: ShardingConfig.defaults.shardsPerGroup }, (_, i) =>
  ShardId.make("default", i + 1)
)

/** Readiness of this runner: it owns shards and is not shutting down. */
export const ReadinessLive = Layer.effect(
  Readiness,
  Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding
    return Readiness.of({
      shards: Effect.sync(() => shards.some((shard) => sharding.hasShardId(shard))),
      draining: sharding.isShutdown
    })
  })
)

type ClusterLayer = Layer.Layer<
  Sharding.Sharding,
  DatabaseStartError | SettingsError | SocketServer.SocketServerError,
  | FileSystem.FileSystem
  | Invalidation
  | LocalRooms
  | NodeFlush
  | Secrets
  | SecureRandom.SecureRandom
  | Settings
  | SqlClient.SqlClient
>

/** Sharding of a single node or of several, by the settings. */
export const ClusterLive = Layer.unwrap(
  Effect.map(Settings, ({ runner }): ClusterLayer =>
    runner === undefined ? singleNode : multiNode(runner.host, runner.port)
  )
)
