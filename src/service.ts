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
import { ListenerFrames } from "#server/features/channels/frames"
import { Channels } from "#server/features/channels/management"
import { ClusterLive, ReadinessLive } from "#server/cluster/cluster"
import { DatabaseLive } from "#server/platform/database"
import { CoreLive, Routes, serveHttp } from "./http/app.ts"
import { HttpServerHandle } from "#server/http/server"
import { ConfigChanges } from "#server/gateway/config-changes"
import { ObservabilityLive } from "#server/telemetry/telemetry"
import { MetricsRoute } from "#server/telemetry/metrics"
import { ReadingsLive } from "#server/telemetry/readings"
import { Gateway } from "#server/gateway/gateway"
import { Frames } from "#server/gateway/frame-handlers"
import { ChannelHub } from "#server/links/channel-hub"
import { Hub } from "#server/links/hub"
import { PlayerChanges } from "#server/gateway/player-changes"
import { RpcDoor } from "#server/gateway/rpc-server"
import { NodeTurn } from "#server/platform/flush"
import { Relays } from "#server/features/peers/frames"
import { LiveReports } from "#server/telemetry/live-reports"
import { SeedLive } from "#server/features/projects/seed"
import { Settings } from "#server/platform/settings/settings"

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
