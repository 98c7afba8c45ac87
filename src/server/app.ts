/**
 * The service as lists of layers. Reading from the bottom of the file up: settings and telemetry, the
 * database and what is decided from it, the entities and the cluster they live in, the endpoints
 * that listen. Given the environment variables of the settings, this is all there is.
 */
import { NodeCrypto, NodeServices } from "@effect/platform-node"
import { ByteSize, Effect, Layer } from "effect"
import { HttpBody, HttpIncomingMessage, HttpRouter, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiScalar } from "effect/http-api"
import { Api } from "#rpc/api"
import { http as limits } from "#rpc/limits"
import { paths } from "#rpc/paths"
import { AgeRepository } from "#sql/ages"
import { AuditRepository } from "#sql/audit"
import { ChannelRepository } from "#sql/channels"
import { ConfigRepository } from "#sql/config"
import { DeveloperRepository } from "#sql/developers"
import { IdempotencyRepository } from "#sql/idempotency"
import { IdentityRepository } from "#sql/identities"
import { MailRepository } from "#sql/mail"
import { SanctionRepository } from "#sql/moderation"
import { NewsRepository } from "#sql/news"
import { FlowRepository } from "#sql/oauth/flows"
import { ProviderRepository } from "#sql/oauth/providers"
import { PlayerDataRepository } from "#sql/player-data/repository"
import { PlayerRepository } from "#sql/players"
import { LiveRepository } from "#sql/projects/live"
import { ManagementRepository } from "#sql/projects/management"
import { MemberRepository, ProjectRepository } from "#sql/projects/repository"
import { UsageRepository } from "#sql/projects/usage"
import { ViewRepository } from "#sql/projects/view"
import { RoomRepository } from "#sql/rooms"
import { SaveRepository } from "#sql/saves"
import { SessionRepository, SigningKeyRepository } from "#sql/sessions"
import { CodeRepository } from "#sql/single-use-codes"
import { StatRepository, WebhookSecretRepository } from "#sql/stats"
import { ThrottleRepository } from "#sql/throttles"
import { ChannelLive, LocalChannels } from "#entities/channel/entity"
import { ChannelSweeper } from "#entities/channel/sweeper"
import { ChannelWriter } from "#entities/channel/writer"
import { ThisNode } from "#entities/local-actors"
import { LocalQueues, MatchmakingQueueLive } from "#entities/matchmaking-queue/entity"
import { LocalSessions, PlayerSessionsLive } from "#entities/player-session/entity"
import { LocalRooms, RoomLive } from "#entities/room/entity"
import { RoomSweeper } from "#entities/room/sweeper"
import { RoomWriter } from "#entities/room/writer"
import { ClusterLive, ReadinessLive } from "./cluster/cluster.ts"
import { AgesHttp } from "./features/ages/handlers.ts"
import { AppealsHttp } from "./features/appeals/handlers.ts"
import { AuditHttp } from "./features/audit/handlers.ts"
import { Audit } from "./features/audit/service.ts"
import { ListenerFrames } from "./features/channels/frames.ts"
import { Channels } from "./features/channels/management.ts"
import { ChannelsHttp } from "./features/channels/management.ts"
import { ConfigHttp, PublicConfigHttp } from "./features/config/handlers.ts"
import { Configs } from "./features/config/service.ts"
import { DevelopersHttp } from "./features/developers/handlers.ts"
import { DeveloperSessions } from "./features/developers/sessions.ts"
import { EmailHttp } from "./features/email/handlers.ts"
import { EmailPages } from "./features/email/pages.ts"
import { IdentitiesHttp } from "./features/identities/handlers.ts"
import { ModerationHttp } from "./features/moderation/handlers.ts"
import { Sanctions } from "./features/moderation/service.ts"
import { NewsHttp } from "./features/news/handlers.ts"
import { ProviderClients } from "./features/oauth/clients.ts"
import { FlowStore } from "./features/oauth/flow-store.ts"
import { ProviderGrants } from "./features/oauth/grants.ts"
import { OAuthHttp } from "./features/oauth/handlers.ts"
import { IdentitySignIn } from "./features/oauth/identity-sign-in.ts"
import { ProvidersHttp } from "./features/oauth/provider-handlers.ts"
import { Providers } from "./features/oauth/providers.ts"
import { TurnServers } from "./features/peers/frames.ts"
import { PlayerDataHttp } from "./features/player-data/handlers.ts"
import { PlayerData } from "./features/player-data/service.ts"
import { PlayersHttp } from "./features/players/handlers.ts"
import { PlayerStatusCache } from "./features/players/status-cache.ts"
import { Environments } from "./features/projects/environments.ts"
import { ProjectsHttp } from "./features/projects/handlers.ts"
import { SeedLive } from "./features/projects/seed.ts"
import { RoomsHttp } from "./features/rooms/frames.ts"
import { SavesHttp } from "./features/saves/handlers.ts"
import { SessionsHttp } from "./features/sessions/handlers.ts"
import { Sessions } from "./features/sessions/service.ts"
import { AccessTokens } from "./features/sessions/tokens.ts"
import { StatsHttp } from "./features/stats/handlers.ts"
import { StatReports } from "./features/stats/service.ts"
import { Verification } from "./features/stats/verification.ts"
import { WebhookSecrets } from "./features/stats/webhook-secrets.ts"
import { SystemHttp } from "./features/system/handlers.ts"
import { TransferHttp } from "./features/transfer/handlers.ts"
import { ConfigChanges } from "./gateway/config-changes.ts"
import { Frames } from "./gateway/frame-handlers.ts"
import { Gateway } from "./gateway/gateway.ts"
import { PlayerChanges } from "./gateway/player-changes.ts"
import { RpcServerLive } from "./gateway/rpc-server.ts"
import { CallersLive } from "./http/callers.ts"
import { ConfigSchemaRoute } from "./http/config-schema.ts"
import { DevMailPage } from "./http/dev-mail-page.ts"
import { upgradeRequired } from "./http/errors.ts"
import { EdgeMiddleware } from "./http/middleware.ts"
import { Origins } from "./http/origins.ts"
import { routerConfig } from "./http/routes.ts"
import { HttpServerHandle } from "./http/server.ts"
import { HttpServerLive } from "./http/server.ts"
import { RequestsLive } from "./http/validation.ts"
import { ChannelHub } from "./links/channel-hub.ts"
import { Hub } from "./links/hub.ts"
import { DatabaseLive } from "./platform/database.ts"
import { NodeFlush } from "./platform/flush.ts"
import { Idempotency } from "./platform/idempotency.ts"
import { Invalidation } from "./platform/invalidation.ts"
import { Mailer } from "./platform/mail/outbox.ts"
import { Outgoing } from "./platform/outgoing.ts"
import { Passwords } from "./platform/passwords.ts"
import { Secrets } from "./platform/secrets.ts"
import { Settings } from "./platform/settings/settings.ts"
import { SingleUseCodes } from "./platform/single-use-codes.ts"
import { Throttles } from "./platform/throttles.ts"
import { Usage } from "./platform/usage.ts"
import { LiveReports } from "./telemetry/live-reports.ts"
import { MetricsRoute } from "./telemetry/metrics.ts"
import { ReadingsLive } from "./telemetry/readings.ts"
import { ObservabilityLive } from "./telemetry/telemetry.ts"

const RepositoriesLive = Layer.mergeAll(
  AgeRepository.layer,
  AuditRepository.layer,
  CodeRepository.layer,
  ConfigRepository.layer,
  DeveloperRepository.layer,
  IdentityRepository.layer,
  MemberRepository.layer,
  NewsRepository.layer,
  PlayerRepository.layer,
  ProjectRepository.layer,
  SanctionRepository.layer,
  LiveRepository.layer,
  MailRepository.layer,
  ManagementRepository.layer,
  UsageRepository.layer,
  ViewRepository.layer,
  SaveRepository.layer,
  StatRepository.layer,
  SessionRepository.layer,
  SigningKeyRepository.layer,
  ThrottleRepository.layer
)

/** Environments, configs, sessions, tokens, throttles: what realtime stands on too. */
export const CoreLive = Origins.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      Audit.layer,
      Configs.layer,
      DeveloperSessions.layer,
      Environments.layer,
      Passwords.layer,
      Sanctions.layer,
      Sessions.layer,
      SingleUseCodes.layer,
      Throttles.layer
    )
  ),
  Layer.provideMerge(Layer.mergeAll(AccessTokens.layer, PlayerStatusCache.layer, Usage.layer)),
  Layer.provideMerge(Layer.mergeAll(Invalidation.layer, RepositoriesLive, Secrets.layer))
)

/** Saves, stats and the public config. */
const GameDataHttp = Layer.mergeAll(PublicConfigHttp, SavesHttp, StatsHttp).pipe(
  Layer.provide(StatReports.layer),
  Layer.provide([Idempotency.layer, Verification.layer]),
  Layer.provide([Outgoing.layer, WebhookSecrets.layer]),
  Layer.provide([IdempotencyRepository.layer, WebhookSecretRepository.layer])
)

/** Sign-in providers, and what they want back of players who go. */
const GrantsLive = ProviderGrants.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      ProviderClients.layer.pipe(Layer.provide(Outgoing.layer)),
      Providers.layer.pipe(Layer.provide(ProviderRepository.layer))
    )
  )
)

/** External sign-in. */
const SignInLive = Layer.mergeAll(ProvidersHttp, OAuthHttp).pipe(
  Layer.provide([IdentitySignIn.layer, FlowStore.layer.pipe(Layer.provide(FlowRepository.layer))]),
  Layer.provide(GrantsLive)
)

/** What is stored about a player, whole. */
const PlayerDataLive = PlayerDataHttp.pipe(
  Layer.provide(PlayerData.layer),
  Layer.provide([PlayerDataRepository.layer, GrantsLive])
)

const ApiRoutes = HttpApiBuilder.layer(Api, { openapiPath: paths.openapi }).pipe(
  Layer.provide([
    AgesHttp,
    AppealsHttp,
    AuditHttp,
    ChannelsHttp,
    ConfigHttp,
    DevelopersHttp,
    EmailHttp,
    GameDataHttp,
    IdentitiesHttp.pipe(Layer.provide(GrantsLive)),
    ModerationHttp,
    NewsHttp,
    PlayersHttp,
    ProjectsHttp,
    PlayerDataLive,
    RoomsHttp,
    SessionsHttp,
    SignInLive,
    SystemHttp,
    TransferHttp
  ]),
  Layer.provide([CallersLive, RequestsLive])
)

/** Text that is large is encoded once, not for every answer anew. */
const asBytes = HttpRouter.middleware((served) =>
  Effect.map(served, (answer) => {
    const { body } = answer
    return body._tag === "Uint8Array"
      ? HttpServerResponse.setBody(answer, HttpBody.uint8Array(body.body, body.contentType))
      : answer
  })
)

/** Options of the API page; {@link HttpApiScalar.ScalarConfig} does not declare all that Scalar reads. */
const scalar = {
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: "never",
  hideClientButton: true,
  agent: { disabled: true },
  mcp: { disabled: true },
  customCss: 'a[href="https://www.scalar.com"] { display: none }'
}

/** The API page inlines Scalar's script, so it works offline. */
const DocsRoute = HttpApiScalar.layer(Api, { path: paths.docs, scalar }).pipe(
  Layer.provide(asBytes.layer)
)

const RealtimeRoute = HttpRouter.add("GET", paths.realtime, upgradeRequired)

/** Pages for people, not programs. */
const Pages = Layer.mergeAll(DocsRoute, EmailPages, DevMailPage)

/** Everything that is asked over HTTP. */
export const Routes = Layer.mergeAll(
  ApiRoutes,
  ConfigSchemaRoute,
  Pages,
  RealtimeRoute,
  EdgeMiddleware
).pipe(Layer.provide(Mailer.layer))

const bodyMax = ByteSize.fromInputUnsafe(limits.bodyMaxBytes)

/** Answers these routes where the settings say. */
export const serveHttp = <A, E, R>(routes: Layer.Layer<A, E, R>) =>
  HttpRouter.serve(routes, {
    disableLogger: true,
    disableListenLog: true,
    routerConfig
  }).pipe(
    Layer.provide(Layer.succeed(HttpIncomingMessage.MaxBodySize, bodyMax)),
    Layer.provideMerge(HttpServerLive)
  )

/** What is remembered, and decided from it. */
const StorageLive = SeedLive.pipe(
  Layer.provideMerge(CoreLive),
  Layer.provideMerge(Layer.mergeAll(ChannelRepository.layer, RoomRepository.layer)),
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
  Layer.provideMerge(Layer.mergeAll(ThisNode.layer, NodeFlush.layer))
)

/** What listens: HTTP, sockets, native RPC. */
const EndpointsLive = Layer.mergeAll(
  Layer.mergeAll(LiveReports, ReadingsLive).pipe(Layer.provideMerge(Gateway.layer)),
  ConfigChanges,
  PlayerChanges,
  serveHttp(Layer.mergeAll(Routes, RpcServerLive, MetricsRoute)).pipe(Layer.provide(ReadinessLive))
).pipe(
  Layer.provideMerge(Frames.layer.pipe(Layer.provide(TurnServers.layer))),
  Layer.provideMerge(ListenerFrames.layer),
  Layer.provideMerge(Layer.mergeAll(ChannelHub.layer, Channels.layer)),
  Layer.provideMerge(Hub.layer),
  Layer.provideMerge(HttpServerHandle.layer)
)

export const ServiceLive = EndpointsLive.pipe(
  Layer.provideMerge(EntitiesLive),
  Layer.provideMerge(StorageLive),
  Layer.provideMerge(Layer.mergeAll(NodeCrypto.layer, NodeServices.layer)),
  Layer.provideMerge(ObservabilityLive),
  Layer.provideMerge(Settings.layer)
)
