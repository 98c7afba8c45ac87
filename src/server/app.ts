/**
 * The architecture of the service: lists of layers, one for each floor, from the database up to the
 * endpoints. A floor uses only floors above it in this file; {@link ServiceLive} stacks them.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { paths } from "#rpc/paths"
import { IdempotencyRepository } from "#sql/idempotency"
import { MailRepository } from "#sql/mail"
import { RateWindowRepository } from "#sql/rate-windows"
import { CodeRepository } from "#sql/single-use-codes"
import { SpentResponseRepository } from "#sql/spent-responses"
import { ThrottleRepository } from "#sql/throttles"
import { ThisNode } from "#entities/local-actors"
import { EntitiesLive, LocalEntities } from "#entities/registry"
import { ClusterLive, ReadinessLive } from "./cluster/cluster.ts"
import { GraceHoldsLive } from "./cluster/grace-holds.ts"
import { WaitingPlayers } from "./cluster/waiting-players.ts"
import { DemoGamesLive } from "./demo/games.ts"
import { DemoPage } from "./demo/route.ts"
import { DemoRunners } from "./demo/runners-route.ts"
import { TwoRunnersLive } from "./demo/two-runners.ts"
import { StartCode } from "./features/developers/sign-in-links.ts"
import {
  FeatureEntityServices,
  FeatureFrames,
  FeatureFrameServices,
  FeaturePages,
  FeatureRepositories,
  FeatureRoutes,
  FeatureRouteServices,
  FeatureServices
} from "./feature-layers.ts"
import { FunctionsGateLive } from "./features/functions/gate.ts"
import { FunctionCallersLive, FunctionsLive } from "./features/functions/layers.ts"
import { SeedLive } from "./features/projects/seed.ts"
import { ConfigChanges } from "./gateway/config-changes.ts"
import { Gateway } from "./gateway/gateway.ts"
import { KeyChanges } from "./gateway/key-changes.ts"
import { PlayerChanges } from "./gateway/player-changes.ts"
import { RealtimeEndpointLive } from "./gateway/realtime-endpoint.ts"
import { RpcServerLive } from "./gateway/rpc-server.ts"
import { SeenPlayers } from "./gateway/seen-players.ts"
import { AcceptDelay } from "./http/accept-delay.ts"
import { AgentRoute } from "./http/agent/endpoint.ts"
import { AppHosts } from "./http/app-hosts.ts"
import { AsyncapiRoute } from "./http/asyncapi.ts"
import { CallersLive } from "./http/callers.ts"
import { ConfigSchemaRoute } from "./http/config-schema.ts"
import { BrowserBundle } from "./http/browser-bundle/bundle.ts"
import { DashboardPort } from "./http/dashboard/listener.ts"
import { DashboardPages } from "./http/dashboard/route.ts"
import { DashboardSessions } from "./http/dashboard/sessions.ts"
import { DevMailPage } from "./http/dev-mail-page.ts"
import { DocsSite } from "./http/docs-site/route.ts"
import { upgradeRequired } from "./http/errors.ts"
import { EdgeMiddleware } from "./http/middleware.ts"
import { ServerWithSmallContext } from "./http/request-context.ts"
import { routerConfig } from "./http/routes.ts"
import { ClientScript } from "./http/sdk/route.ts"
import { InProcessLive } from "./http/in-process.ts"
import { HttpServerHandle } from "./http/server.ts"
import { HttpServerLive } from "./http/server.ts"
import { StartPage } from "./http/start-page.ts"
import { RequestsLive } from "./http/validation.ts"
import { VoicePage } from "./http/voice-page/route.ts"
import { Hub } from "./links/hub.ts"
import { BlobStoreLive } from "./platform/blobs/configured-store.ts"
import { DatabaseLive } from "./platform/database.ts"
import { NodeFlush } from "./platform/flush.ts"
import { Idempotency } from "./platform/idempotency.ts"
import { InProcess } from "./platform/in-process.ts"
import { Invalidation } from "./platform/invalidation.ts"
import { Mailer } from "./platform/mail/outbox.ts"
import { Meter } from "./platform/meter.ts"
import { Outgoing } from "./platform/outgoing.ts"
import { Passwords } from "./platform/passwords.ts"
import { SecureRandomLive } from "./platform/random-bytes.ts"
import { RequestCounts } from "./platform/request-counts.ts"
import { Secrets } from "./platform/secrets.ts"
import { Settings } from "./platform/settings/settings.ts"
import { SingleUseCodes } from "./platform/single-use-codes.ts"
import { SpentResponses } from "./platform/spent-responses.ts"
import { Throttles } from "./platform/throttles.ts"
import { Usage } from "./platform/usage.ts"
import { HealthReadings } from "./telemetry/health-readings.ts"
import { LiveReports } from "./telemetry/live-reports.ts"
import { MetricsRoute } from "./telemetry/metrics.ts"
import { NodeReports } from "./telemetry/node-reports.ts"
import { ReadingsLive } from "./telemetry/readings.ts"
import { ObservabilityLive } from "./telemetry/telemetry.ts"
import { UsageSampler } from "./telemetry/usage-sampler.ts"

// Platform: services that know no feature.

/** Storage that no feature owns. */
const PlatformRepositories = Layer.mergeAll(
  CodeRepository.layer,
  IdempotencyRepository.layer,
  MailRepository.layer,
  RateWindowRepository.layer,
  SpentResponseRepository.layer,
  ThrottleRepository.layer
)

const PlatformLive = Layer.mergeAll(
  BlobStoreLive,
  Idempotency.layer,
  InProcess.layer,
  Meter.layer,
  Outgoing.layer,
  Passwords.layer,
  RequestCounts.layer,
  SingleUseCodes.layer,
  SpentResponses.layer,
  Throttles.layer,
  Usage.layer
).pipe(Layer.provideMerge(Layer.mergeAll(Invalidation.layer, Secrets.layer)))

/** Layers below the endpoints, except entities. They need a database. */
export const CoreLive = FeatureServices.pipe(
  Layer.provideMerge(PlatformLive),
  Layer.provideMerge(Layer.merge(FeatureRepositories, PlatformRepositories))
)

// Entities and the cluster that distributes them.

const ClusteredEntitiesLive = EntitiesLive.pipe(
  Layer.provideMerge(ClusterLive),
  Layer.provideMerge(GraceHoldsLive),
  Layer.provideMerge(LocalEntities.pipe(Layer.provide(FeatureEntityServices))),
  Layer.provideMerge(Layer.mergeAll(NodeFlush.layer, ThisNode.layer, WaitingPlayers.layer))
)

// Links to entities, and the frame handlers that use them.

const FramesLive = FeatureFrames.pipe(
  Layer.provideMerge(FeatureFrameServices),
  Layer.provideMerge(Hub.layer)
)

// HTTP: handlers of the API, and pages.

/** Services that only routes use. */
const RouteServicesLive = Layer.mergeAll(BrowserBundle.layer, FeatureRouteServices, Mailer.layer)

/** The API over HTTP, and the same handlers for calls in the process. */
const ApiRoutes = Layer.merge(
  HttpApiBuilder.layer(Api, { openapiPath: paths.openapi }),
  InProcessLive
).pipe(Layer.provide(FeatureRoutes), Layer.provide([CallersLive, FunctionsGateLive, RequestsLive]))

/** The response to a plain request for a WebSocket path. */
const WebSocketRoutes = Layer.mergeAll(
  HttpRouter.add("GET", paths.realtime, upgradeRequired),
  HttpRouter.add("GET", paths.rpc, upgradeRequired)
)

export const Routes = Layer.mergeAll(
  AgentRoute,
  AsyncapiRoute,
  ApiRoutes,
  ClientScript,
  ConfigSchemaRoute,
  DashboardPages,
  DashboardSessions,
  DemoPage,
  DemoRunners,
  DevMailPage,
  DocsSite,
  FeaturePages,
  StartPage,
  VoicePage,
  WebSocketRoutes,
  EdgeMiddleware
).pipe(Layer.provide(RouteServicesLive))

/** Serves these routes on the address and port of the settings. Their requests need no services. */
export const serveHttp = <A, E, R>(
  routes: Layer.Layer<A, E, R> &
    ([HttpRouter.Request.Only<"Requires" | "GlobalRequires", R>] extends [never] ? unknown : never)
) =>
  HttpRouter.serve(Layer.merge(routes, AppHosts), {
    disableLogger: true,
    disableListenLog: true,
    routerConfig
  }).pipe(Layer.provide(ServerWithSmallContext), Layer.provideMerge(HttpServerLive))

/** HTTP, /v1/realtime, /v1/rpc and /metrics. */
const EndpointsLive = Layer.mergeAll(
  LiveReports,
  NodeReports,
  ReadingsLive,
  HealthReadings.pipe(Layer.provide(ReadinessLive)),
  UsageSampler,
  ConfigChanges,
  FunctionCallersLive,
  KeyChanges,
  PlayerChanges,
  RealtimeEndpointLive,
  RpcServerLive,
  SeenPlayers,
  TwoRunnersLive,
  serveHttp(Layer.mergeAll(Routes, MetricsRoute)).pipe(Layer.provide(ReadinessLive)),
  DashboardPort
).pipe(
  Layer.provideMerge(Gateway.layer),
  Layer.provideMerge(FunctionsLive),
  Layer.provideMerge(FramesLive),
  Layer.provideMerge(AcceptDelay.layer),
  Layer.provideMerge(HttpServerHandle.layer)
)

/** The whole service; the environment variables of the settings are its only input. */
export const ServiceLive = EndpointsLive.pipe(
  Layer.provideMerge(ClusteredEntitiesLive),
  Layer.provideMerge(
    Layer.merge(DemoGamesLive, StartCode.layer).pipe(Layer.provideMerge(SeedLive))
  ),
  Layer.provideMerge(CoreLive),
  Layer.provideMerge(DatabaseLive),
  Layer.provideMerge(SecureRandomLive),
  Layer.provideMerge(Layer.mergeAll(NodeCrypto.layer, NodeServices.layer)),
  Layer.provideMerge(ObservabilityLive),
  Layer.provideMerge(Settings.layer)
)
