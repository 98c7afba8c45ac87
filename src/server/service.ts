/**
 * The running service, as lists of layers: what is remembered, what is alive, what listens. Given the
 * settings' environment, this is all there is.
 */
import { NodeCrypto, NodeServices } from "@effect/platform-node"
import { Layer } from "effect"
import { ChannelLive, LocalChannels } from "#entities/channel/entity"
import { ChannelSweeper } from "#entities/channel/sweeper"
import { ChannelWriter } from "#entities/channel/writer"
import { LocalQueues, MatchmakingQueueLive } from "#entities/matchmaking-queue/entity"
import { LocalSessions, PlayerSessionsLive } from "#entities/player-session/entity"
import { LocalRooms, RoomLive } from "#entities/room/entity"
import { RoomSweeper } from "#entities/room/sweeper"
import { RoomWriter } from "#entities/room/writer"
import { ThisNode } from "#entities/local-actors"
import { ChannelRows } from "#sql/channels"
import { RoomRows } from "#sql/rooms"
import { ListenerFrames } from "./features/channels/frames.ts"
import { Channels } from "./features/channels/management.ts"
import { ClusterLive, ReadinessLive } from "./cluster/cluster.ts"
import { DatabaseLive } from "./platform/database.ts"
import { CoreLive, Routes, serveHttp } from "./app.ts"
import { HttpServerHandle } from "./http/server.ts"
import { ConfigChanges } from "./gateway/config-changes.ts"
import { ObservabilityLive } from "./telemetry/telemetry.ts"
import { MetricsRoute } from "./telemetry/metrics.ts"
import { ReadingsLive } from "./telemetry/readings.ts"
import { Gateway } from "./gateway/gateway.ts"
import { Frames } from "./gateway/frame-handlers.ts"
import { ChannelHub } from "./links/channel-hub.ts"
import { Hub } from "./links/hub.ts"
import { PlayerChanges } from "./gateway/player-changes.ts"
import { RpcDoor } from "./gateway/rpc-server.ts"
import { NodeTurn } from "./platform/flush.ts"
import { Relays } from "./features/peers/frames.ts"
import { LiveReports } from "./telemetry/live-reports.ts"
import { SeedLive } from "./features/projects/seed.ts"
import { Settings } from "./platform/settings/settings.ts"

/** What is remembered, and decided from it. */
const MemoryLive = SeedLive.pipe(
  Layer.provideMerge(CoreLive),
  Layer.provideMerge(Layer.mergeAll(ChannelRows.layer, RoomRows.layer)),
  Layer.provideMerge(DatabaseLive)
)

/** What is alive: rooms, queues, channels and player sessions, wherever in the cluster. */
const EntitiesLive = Layer.mergeAll(
  RoomLive,
  MatchmakingQueueLive,
  PlayerSessionsLive,
  RoomSweeper,
  ChannelLive,
  ChannelSweeper
).pipe(
  Layer.provideMerge(ClusterLive),
  Layer.provideMerge(
    Layer.mergeAll(
      RoomWriter.layer,
      LocalRooms.layer,
      LocalQueues.layer,
      LocalSessions.layer,
      ChannelWriter.layer,
      LocalChannels.layer
    )
  ),
  Layer.provideMerge(Layer.mergeAll(ThisNode.layer, NodeTurn.layer))
)

/** What listens: HTTP, sockets, native RPC. */
const DoorsLive = Layer.mergeAll(
  Layer.mergeAll(LiveReports, ReadingsLive).pipe(Layer.provideMerge(Gateway.layer)),
  ConfigChanges,
  PlayerChanges,
  serveHttp(Layer.mergeAll(Routes, RpcDoor, MetricsRoute)).pipe(Layer.provide(ReadinessLive))
).pipe(
  Layer.provideMerge(Frames.layer.pipe(Layer.provide(Relays.layer))),
  Layer.provideMerge(ListenerFrames.layer),
  Layer.provideMerge(Layer.mergeAll(ChannelHub.layer, Channels.layer)),
  Layer.provideMerge(Hub.layer),
  Layer.provideMerge(HttpServerHandle.layer)
)

export const ServiceLive = DoorsLive.pipe(
  Layer.provideMerge(EntitiesLive),
  Layer.provideMerge(MemoryLive),
  Layer.provideMerge(Layer.mergeAll(NodeCrypto.layer, NodeServices.layer)),
  Layer.provideMerge(ObservabilityLive),
  Layer.provideMerge(Settings.layer)
)
