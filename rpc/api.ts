/** The HTTP API: one `add` for each group. The OpenAPI document derives from it. */
import { HttpApi, OpenApi } from "effect/http-api"
import { AgesApi } from "./ages.ts"
import { AuditApi } from "./audit.ts"
import { ChannelsApi } from "./channels/api.ts"
import { AppealsApi, SanctionsApi } from "./appeals.ts"
import { MoneyApi, PaymentsApi } from "./money.ts"
import { ModerationApi, ProjectModerationApi } from "./moderation.ts"
import {
  ConfigApi,
  DefinitionsApi,
  FeaturesApi,
  ProjectConfigApi,
  ProjectFeaturesApi
} from "./config.ts"
import { FunctionsApi, ProjectFunctionsApi } from "./functions/api.ts"
import { HostingApi, ProjectHostingApi } from "./hosting/api.ts"
import { IdentitiesApi } from "./identities.ts"
import { LiveApi } from "./live.ts"
import { NewsApi } from "./news.ts"
import { ProjectProvidersApi, ProvidersApi } from "./oauth/api.ts"
import { EmailApi, PlayerEmailApi } from "./email.ts"
import { DeveloperOAuthApi } from "./oauth/developers.ts"
import { OAuthApi } from "./oauth/sign-in.ts"
import { DeveloperSignInApi, DevelopersApi, PlatformApi } from "./developers.ts"
import { PlayerDataApi, AdminPlayerDataApi, ProjectPlayerDataApi } from "./player-data.ts"
import { PlayersApi } from "./players.ts"
import { EnvironmentApi } from "./projects/environment.ts"
import { KeyApi, ProjectApi, ProjectsApi } from "./projects/projects.ts"
import { finishDocument } from "./openapi/document.ts"
import { realtimeReference } from "./reference.ts"
import { RoomsApi } from "./rooms.ts"
import { PlayerSavesApi, SavesApi } from "./saves.ts"
import { SessionsApi } from "./sessions.ts"
import { AdminShareApi, ProjectShareApi, ShareApi } from "./share/api.ts"
import { IntegrityApi, PlayerStatsApi, ProjectIntegrityApi, StatsApi } from "./stats.ts"
import { SystemApi } from "./system.ts"
import { tagGroups, tagged } from "./tags.ts"
import { XProfilesApi } from "./share/x-profiles.ts"
import { TransferApi } from "./transfer.ts"

const summary = "Sign-in, saves, stats, rooms, matchmaking and channels for web and mobile games."

export class Api extends HttpApi.make("player-backend")
  .add(tagged(SessionsApi))
  .add(tagged(EmailApi))
  .add(tagged(PlayerEmailApi))
  .add(tagged(OAuthApi))
  .add(tagged(TransferApi))
  .add(tagged(PlayersApi))
  .add(tagged(IdentitiesApi))
  .add(tagged(XProfilesApi))
  .add(tagged(PlayerDataApi))
  .add(tagged(AgesApi))
  .add(tagged(NewsApi))
  .add(tagged(SanctionsApi))
  .add(tagged(AppealsApi))
  .add(tagged(AdminPlayerDataApi))
  .add(tagged(ProjectPlayerDataApi))
  .add(tagged(ModerationApi))
  .add(tagged(ProjectModerationApi))
  .add(tagged(RoomsApi))
  .add(tagged(ChannelsApi))
  .add(tagged(SavesApi))
  .add(tagged(PlayerSavesApi))
  .add(tagged(StatsApi))
  .add(tagged(PlayerStatsApi))
  .add(tagged(IntegrityApi))
  .add(tagged(ProjectIntegrityApi))
  .add(tagged(ShareApi))
  .add(tagged(AdminShareApi))
  .add(tagged(ProjectShareApi))
  .add(tagged(DefinitionsApi))
  .add(tagged(ConfigApi))
  .add(tagged(ProjectConfigApi))
  .add(tagged(FeaturesApi))
  .add(tagged(ProjectFeaturesApi))
  .add(tagged(HostingApi))
  .add(tagged(ProjectHostingApi))
  .add(tagged(FunctionsApi))
  .add(tagged(ProjectFunctionsApi))
  .add(tagged(ProvidersApi))
  .add(tagged(ProjectProvidersApi))
  .add(tagged(AuditApi))
  .add(tagged(DeveloperSignInApi))
  .add(tagged(DeveloperOAuthApi))
  .add(tagged(DevelopersApi))
  .add(tagged(KeyApi))
  .add(tagged(ProjectsApi))
  .add(tagged(ProjectApi))
  .add(tagged(EnvironmentApi))
  .add(tagged(LiveApi))
  .add(tagged(MoneyApi))
  .add(tagged(PaymentsApi))
  .add(tagged(PlatformApi))
  .add(tagged(SystemApi))
  .annotate(HttpApi.ParseOptions, { errors: "all" })
  .annotateMerge(
    OpenApi.annotations({
      title: "Player backend",
      version: "1",
      description: `${summary}\n${realtimeReference()}`,
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
      servers: [{ url: "/", description: "This deployment" }],
      override: { "x-tagGroups": tagGroups },
      transform: finishDocument
    })
  ) {}
