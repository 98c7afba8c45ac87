/**
 * The HTTP side of the service as layers: what it stands on (`CoreLive`), what it answers (`Routes`),
 * and the server that listens (`serveHttp`). Everything needs settings and a database.
 */
import { ByteSize, Effect, Layer } from "effect"
import { HttpBody, HttpIncomingMessage, HttpRouter, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiScalar } from "effect/http-api"
import { Api } from "#rpc/api"
import { http as limits } from "#rpc/limits"
import { AgeRows } from "#sql/ages"
import { AuditRows } from "#sql/audit"
import { ConfigRows } from "#sql/config"
import { DeveloperRows } from "#sql/developers"
import { IdempotencyRows } from "#sql/idempotency"
import { IdentityRows } from "#sql/identities"
import { MailRows } from "#sql/mail"
import { SanctionRows } from "#sql/moderation"
import { ProviderRows } from "#sql/oauth/providers"
import { StepRows } from "#sql/oauth/flows"
import { NewsRows } from "#sql/news"
import { PlayerRows } from "#sql/players/repository"
import { PlayerRecords } from "#sql/players/records"
import { MemberRows, ProjectRows } from "#sql/projects/repository"
import { LiveRows } from "#sql/projects/live"
import { ManagementRows } from "#sql/projects/management"
import { UsageRows } from "#sql/projects/usage"
import { ViewRows } from "#sql/projects/view"
import { SaveRows } from "#sql/saves"
import { SessionRows, SigningKeyRows } from "#sql/sessions"
import { CodeRows } from "#sql/single-use-codes"
import { StatRows, WebhookSecretRows } from "#sql/stats"
import { ThrottleRows } from "#sql/throttles"
import { AgesHttp } from "#server/features/ages/handlers"
import { Audit, AuditHttp } from "#server/features/audit/service"
import { ChannelsHttp } from "#server/features/channels/management"
import { ConfigHttp, Configs } from "#server/features/config/service"
import { PublicConfigHttp } from "#server/features/config/public"
import { Passwords } from "#server/platform/passwords"
import { DevelopersHttp } from "#server/features/developers/handlers"
import { DeveloperSessions } from "#server/features/developers/sessions"
import { EmailHttp } from "#server/features/email/handlers"
import { EmailPages } from "#server/features/email/pages"
import { Idempotency } from "#server/platform/idempotency"
import { IdentitiesHttp } from "#server/features/identities/handlers"
import { Invalidation } from "#server/platform/invalidation"
import { Mails } from "#server/platform/mail/outbox"
import { DevMailPage } from "#server/http/dev-mail-page"
import { ModerationHttp } from "#server/features/moderation/handlers"
import { Sanctions } from "#server/features/moderation/sanctions"
import { Standings } from "#server/features/players/status-cache"
import { ProviderClients } from "#server/features/oauth/clients"
import { Entrance } from "#server/features/oauth/identity-sign-in"
import { ProviderGrants } from "#server/features/oauth/grants"
import { SignInHttp } from "#server/features/oauth/handlers"
import { Providers, ProvidersHttp } from "#server/features/oauth/providers"
import { SignInSteps } from "#server/features/oauth/flow-store"
import { NewsHttp } from "#server/features/news/handlers"
import { Outgoing } from "#server/platform/outgoing"
import { PlayerDataHttp } from "#server/features/player-data/handlers"
import { PlayerData } from "#server/features/player-data/service"
import { PlayersHttp } from "#server/features/players/handlers"
import { Environments } from "#server/features/projects/environments"
import { ProjectsHttp } from "#server/features/projects/handlers"
import { Usage } from "#server/features/projects/usage"
import { RoomsHttp } from "#server/features/rooms/frames"
import { SavesHttp } from "#server/features/saves/handlers"
import { Secrets } from "#server/platform/secrets"
import { Sessions } from "#server/features/sessions/service"
import { SingleUseCodes } from "#server/platform/single-use-codes"
import { SessionsHttp } from "#server/features/sessions/handlers"
import { AccessTokens } from "#server/features/sessions/tokens"
import { StatsHttp } from "#server/features/stats/handlers"
import { StatReports } from "#server/features/stats/reports"
import { Verification } from "#server/features/stats/verification"
import { WebhookSecrets } from "#server/features/stats/webhook-secrets"
import { SystemHttp } from "#server/features/system/handlers"
import { Throttles } from "#server/platform/throttles"
import { TransferHttp } from "#server/features/transfer/handlers"
import { CallersLive } from "#server/http/callers"
import { ConfigSchemaRoute } from "#server/http/config-schema"
import { Edge } from "#server/http/middleware"
import { upgradeRequired } from "#server/http/errors"
import { paths, routerConfig } from "#server/http/routes"
import { Origins } from "#server/http/origins"
import { RequestsLive } from "#server/http/validation"
import { HttpServerLive } from "#server/http/server"

const RowsLive = Layer.mergeAll(
  AgeRows.layer,
  AuditRows.layer,
  CodeRows.layer,
  ConfigRows.layer,
  DeveloperRows.layer,
  IdentityRows.layer,
  MemberRows.layer,
  NewsRows.layer,
  PlayerRows.layer,
  ProjectRows.layer,
  SanctionRows.layer,
  LiveRows.layer,
  MailRows.layer,
  ManagementRows.layer,
  UsageRows.layer,
  ViewRows.layer,
  SaveRows.layer,
  StatRows.layer,
  SessionRows.layer,
  SigningKeyRows.layer,
  ThrottleRows.layer
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
  Layer.provideMerge(Layer.mergeAll(AccessTokens.layer, Standings.layer, Usage.layer)),
  Layer.provideMerge(Layer.mergeAll(Invalidation.layer, RowsLive, Secrets.layer))
)

/** Saves, stats and the public config. */
const GameDataHttp = Layer.mergeAll(PublicConfigHttp, SavesHttp, StatsHttp).pipe(
  Layer.provide(StatReports.layer),
  Layer.provide([Idempotency.layer, Verification.layer]),
  Layer.provide([Outgoing.layer, WebhookSecrets.layer]),
  Layer.provide([IdempotencyRows.layer, WebhookSecretRows.layer])
)

/** Sign-in providers, and what they want back of players who go. */
const GrantsLive = ProviderGrants.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      ProviderClients.layer.pipe(Layer.provide(Outgoing.layer)),
      Providers.layer.pipe(Layer.provide(ProviderRows.layer))
    )
  )
)

/** External sign-in. */
const SignInLive = Layer.mergeAll(ProvidersHttp, SignInHttp).pipe(
  Layer.provide([Entrance.layer, SignInSteps.layer.pipe(Layer.provide(StepRows.layer))]),
  Layer.provide(GrantsLive)
)

/** What is stored about a player, whole. */
const PlayerDataLive = PlayerDataHttp.pipe(
  Layer.provide(PlayerData.layer),
  Layer.provide([PlayerRecords.layer, GrantsLive])
)

const ApiRoutes = HttpApiBuilder.layer(Api, { openapiPath: paths.openapi }).pipe(
  Layer.provide([
    AgesHttp,
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

/** The reference page carries its script itself: it works without the internet. */
const DocsRoute = HttpApiScalar.layer(Api, {
  path: paths.docs,
  scalar: { withDefaultFonts: false }
}).pipe(Layer.provide(asBytes.layer))

const RealtimeRoute = HttpRouter.add("GET", paths.realtime, upgradeRequired)

/** Pages for people, not programs. */
const Pages = Layer.mergeAll(DocsRoute, EmailPages, DevMailPage)

/** Everything that is asked over HTTP. */
export const Routes = Layer.mergeAll(ApiRoutes, ConfigSchemaRoute, Pages, RealtimeRoute, Edge).pipe(
  Layer.provide(Mails.layer)
)

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
