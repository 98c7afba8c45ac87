/**
 * A runner of the simulated cluster: the layers of the service from the frame handlers down to the
 * entities, on the sharding of Effect Cluster, over simulated processes, connections, locks and
 * database. HTTP, sockets and credentials are left out: players connect through a `FrameSink`.
 */
import { Cause, type Context, DateTime, Effect, Exit, Layer, Option, Scope, Stream } from "effect"
import { MessageStorage, RunnerAddress, RunnerStorage, ShardingConfig } from "effect/cluster"
import type { SecureRandom } from "effect/crypto"
import { RpcSerialization } from "effect/rpc"
import type { FeatureErrors } from "#rpc/config-document/feature-errors"
import { TurnUnavailable } from "#rpc/errors/codes"
import { ChannelRepository } from "#sql/channels"
import { NodeRepository } from "#sql/live/nodes"
import { PlayerRepository } from "#sql/players"
import { RoomRepository } from "#sql/rooms"
import { RunnerReports } from "#sql/runners"
import { ChannelWriter } from "#entities/channel/writer"
import { ThisNode } from "#entities/local-actors"
import { LocalSessions } from "#entities/player-session/entity"
import { EntitiesLive } from "#entities/registry"
import { RoomWriter } from "#entities/room/writer"
import { VoiceCalls } from "#entities/voice-session/calls"
import { NodeFlush } from "#server/platform/flush"
import { Invalidation } from "#server/platform/invalidation"
import { makePendingBatches } from "#server/platform/pending-changes"
import { Throttles } from "#server/platform/throttles"
import { shardingTimings, RunnerLive } from "#server/cluster/cluster"
import { GraceHoldsLive } from "#server/cluster/grace-holds"
import { WaitingPlayers } from "#server/cluster/waiting-players"
import { Hub } from "#server/links/hub"
import type { PlayerConnection } from "#server/links/player-connection"
import { Configs } from "#server/features/config/service"
import { FeatureFrames } from "#server/feature-layers"
import { TurnServers } from "#server/features/peers/turn-servers"
import { Sessions } from "#server/features/sessions/service"
import { VoiceSessions } from "#server/features/voice/service"
import { featureErrorsOf } from "#server/gateway/admission"
import { ConfigChanges } from "#server/gateway/config-changes"
import { PlayerChanges } from "#server/gateway/player-changes"
import { type ChannelRecord, recordedChannels } from "./channel-record.ts"
import type { Database } from "./database.ts"
import type { ConfigPushes } from "./config-pushes.ts"
import { environmentId } from "./environment.ts"
import { type Network, transport } from "./network.ts"
import type { Invalidations } from "./invalidations.ts"
import { type NodeTable, SimulatedReports } from "./node-reports.ts"
import type { PlayerRecords } from "./player-records.ts"
import type { Chance } from "./random.ts"
import { checkedQueues } from "./queue-record.ts"
import { recordedRooms, type RoomRecord } from "./record.ts"
import type { ShardLocks } from "./shard-locks.ts"
import { Process, type Simulator } from "./simulator.ts"
import { simulatedMedia } from "./voice-media.ts"

/** Slower than in production: hand-over takes a little longer, and a seed runs much faster. */
const assignmentMillis = 400

const defaultShards = 12

const CoreLive = Layer.mergeAll(
  Throttles.off,
  Layer.succeed(
    PlayerRepository,
    PlayerRepository.of({
      find: (environment, id) =>
        Effect.succeedSome({
          id,
          environmentId: environment,
          displayName: id,
          isGuest: true,
          declaredAgeBand: null,
          createdAt: DateTime.makeUnsafe(0),
          methods: [],
          emailVerified: false
        }),
      declareAge: () => Effect.succeedNone,
      lastSeenAt: () => Effect.succeed(null),
      rename: () => Effect.succeedNone
    })
  ),
  Layer.mock(Sessions)({ sessionIdOf: () => undefined }),
  Layer.succeed(
    TurnServers,
    TurnServers.of({
      serversFor: (_, iceTransportPolicy) =>
        iceTransportPolicy === "relay"
          ? Effect.fail(new TurnUnavailable())
          : Effect.succeed({ iceServers: [], iceTransportPolicy, expiresAt: "" })
    })
  )
)

/** What all runners of a simulation share. */
export interface RunnerContext {
  readonly network: Network
  readonly database: Database
  readonly locks: ShardLocks
  readonly invalidations: Invalidations
  readonly records: PlayerRecords
  readonly configs: ConfigPushes
  readonly record: RoomRecord
  readonly channels: ChannelRecord
  readonly nodes: NodeTable
  /** Number of shards; the default is few, so that bookkeeping does not dominate the run time. */
  readonly shards?: number
}

const clusterOf = (process: Process, address: RunnerAddress.RunnerAddress, all: RunnerContext) =>
  RunnerLive.pipe(
    Layer.provide([
      transport(all.network, process, address),
      MessageStorage.layerNoop,
      Layer.succeed(RunnerStorage.RunnerStorage, all.locks.storageOf(process)),
      Layer.succeed(RunnerReports, all.locks.reportsOf(process))
    ]),
    Layer.provide(
      ShardingConfig.layer({
        ...shardingTimings,
        refreshAssignmentsInterval: assignmentMillis,
        shardsPerGroup: all.shards ?? defaultShards,
        runnerAddress: Option.some(address)
      })
    ),
    Layer.provide(RpcSerialization.layerSchemaBinary())
  )

/** Follows what the environment offers to sockets. */
const followFeatures = (apply: (errors: FeatureErrors) => void) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const configs = yield* Configs
      const applyUntilDone = yield* makePendingBatches
      const look = Effect.map(featureErrorsOf(environmentId), apply).pipe(
        Effect.provideService(Configs, configs)
      )
      yield* configs.changes.pipe(
        Stream.runForEachArray((changed) => applyUntilDone(changed, () => look)),
        Effect.forkScoped
      )
    })
  )

const nodeOf = (
  process: Process,
  address: RunnerAddress.RunnerAddress,
  all: RunnerContext,
  apply: (errors: FeatureErrors) => void
) =>
  Layer.mergeAll(
    FeatureFrames,
    PlayerChanges,
    ConfigChanges,
    SimulatedReports,
    followFeatures(apply)
  ).pipe(
    Layer.provide(VoiceSessions.layer),
    Layer.provideMerge(Hub.layer),
    Layer.provideMerge(EntitiesLive),
    Layer.provideMerge(clusterOf(process, address, all)),
    Layer.provideMerge(GraceHoldsLive),
    Layer.provideMerge(
      Layer.mergeAll(
        RoomWriter.layer,
        ChannelWriter.layer,
        recordedRooms(process, all.record),
        recordedChannels(process, all.channels),
        checkedQueues(process),
        LocalSessions.layer,
        VoiceCalls.layer.pipe(Layer.provide(simulatedMedia(process)))
      )
    ),
    Layer.provideMerge(Layer.mergeAll(ThisNode.layer, NodeFlush.layer, WaitingPlayers.layer)),
    Layer.provideMerge(Layer.succeed(NodeRepository, all.nodes.repositoryOf(process))),
    Layer.provideMerge(CoreLive),
    Layer.provideMerge(Layer.merge(all.records.cacheOf(process), all.configs.configsOf(process))),
    Layer.provideMerge(Layer.succeed(Invalidation, all.invalidations.invalidationOf(process))),
    Layer.provideMerge(Layer.succeed(ChannelRepository, all.database.channelRowsFor(process))),
    Layer.provideMerge(Layer.succeed(RoomRepository, all.database.rowsFor(process)))
  )

/** A runner as players and checks see it. */
export type NodeServices = Layer.Success<ReturnType<typeof nodeOf>>

/** The server side of a socket on a runner. */
export interface Seat {
  readonly connection: PlayerConnection | undefined
  /** What the environment offers has changed. */
  readonly setFeatureErrors: (errors: FeatureErrors) => void
  /** The node closes the socket: it drains or its process ends. */
  readonly drop: (how: "draining" | "reset" | "silence") => void
}

export class Runner {
  readonly name: string
  readonly host: string
  readonly process: Process
  readonly #address: RunnerAddress.RunnerAddress
  readonly #all: RunnerContext
  readonly #scope = Scope.makeUnsafe()
  /** Sockets open on this runner. */
  readonly sockets = new Set<Seat>()
  services: Context.Context<NodeServices> | undefined
  /** Time for which a player waits for its admission here, beside what that takes. */
  admissionMillis: () => number = () => 0
  #stopping = false

  constructor(
    name: string,
    host: string,
    simulator: Simulator,
    chance: Chance,
    all: RunnerContext
  ) {
    this.name = name
    this.host = host
    this.process = new Process(name, simulator, chance)
    this.#address = RunnerAddress.make(host, 1)
    this.#all = all
    const follow = (errors: FeatureErrors): void => {
      for (const socket of this.sockets) socket.setFeatureErrors(errors)
    }
    this.process.run(
      Effect.map(
        Layer.buildWithScope(nodeOf(this.process, this.#address, all, follow), this.#scope),
        (services) => {
          this.services = services
          simulator.note(`${name} is up`)
        }
      )
    )
  }

  /** Whether a player can open a socket here. */
  get open(): boolean {
    return this.services !== undefined && !this.#stopping && this.process.state !== "dead"
  }

  get living(): boolean {
    return this.process.state !== "dead"
  }

  /** Runs an effect on this runner; it must succeed. */
  run(effect: Effect.Effect<void, never, NodeServices | SecureRandom.SecureRandom>): void {
    const { services } = this
    if (services === undefined) return
    this.process.run(
      effect.pipe(
        Effect.provideContext(services),
        Effect.catchCause((cause) =>
          Effect.sync(() => this.process.simulator.fault(`${this.name}: ${Cause.pretty(cause)}`))
        )
      )
    )
  }

  /** SIGKILL, or (`silently`) loss of the whole machine. */
  kill(silently: boolean): void {
    this.process.kill(silently)
    this.#all.network.gone(this.process, silently)
    for (const socket of Array.from(this.sockets)) socket.drop(silently ? "silence" : "reset")
  }

  /** SIGTERM: closes the sockets, then releases the layers from the top. */
  stop(): void {
    if (this.#stopping || !this.living) return
    this.#stopping = true
    const drain = Effect.sync(() => {
      for (const socket of Array.from(this.sockets)) socket.drop("draining")
    })
    this.process.run(
      drain.pipe(
        Effect.andThen(Effect.sleep(50)),
        Effect.andThen(Scope.close(this.#scope, Exit.void)),
        Effect.timeoutOption(10_000),
        Effect.andThen(Effect.sync(() => this.kill(false)))
      )
    )
  }
}
