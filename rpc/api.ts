/** The whole HTTP interface, one line a group; the OpenAPI document and the client derive from it. */
import { HttpApi, OpenApi } from "effect/http-api"
import { AgesApi } from "./ages.ts"
import { AuditApi } from "./audit.ts"
import { ChannelsApi } from "./channels.ts"
import { AppealsApi, SanctionsApi } from "./appeals.ts"
import { ModerationApi, ProjectModerationApi } from "./moderation.ts"
import {
  ConfigApi,
  DefinitionsApi,
  FeaturesApi,
  ProjectConfigApi,
  ProjectFeaturesApi
} from "./config.ts"
import { IdentitiesApi } from "./identities.ts"
import { NewsApi } from "./news.ts"
import { ProjectProvidersApi, ProvidersApi } from "./oauth/api.ts"
import { EmailApi, OwnEmailApi } from "./email.ts"
import { SignInApi } from "./oauth/sign-in.ts"
import { DeveloperAccessApi, DevelopersApi, PlatformApi } from "./developers.ts"
import { OwnDataApi, PlayerDataApi, ProjectPlayerDataApi } from "./player-data.ts"
import { PlayersApi } from "./players.ts"
import { ProjectApi, ProjectsApi, ProjectViewApi } from "./projects.ts"
import { realtimeReference } from "./reference.ts"
import { RoomsApi } from "./rooms.ts"
import { SavesApi } from "./saves.ts"
import { SessionsApi } from "./sessions.ts"
import { IntegrityApi, ProjectIntegrityApi, StatsApi } from "./stats.ts"
import { SystemApi } from "./system.ts"
import { TransferApi } from "./transfer.ts"

export class Api extends HttpApi.make("player-backend")
  .add(SessionsApi)
  .add(EmailApi)
  .add(OwnEmailApi)
  .add(SignInApi)
  .add(TransferApi)
  .add(PlayersApi)
  .add(IdentitiesApi)
  .add(OwnDataApi)
  .add(AgesApi)
  .add(NewsApi)
  .add(SanctionsApi)
  .add(AppealsApi)
  .add(PlayerDataApi)
  .add(ProjectPlayerDataApi)
  .add(ModerationApi)
  .add(ProjectModerationApi)
  .add(RoomsApi)
  .add(ChannelsApi)
  .add(SavesApi)
  .add(StatsApi)
  .add(IntegrityApi)
  .add(ProjectIntegrityApi)
  .add(DefinitionsApi)
  .add(ConfigApi)
  .add(ProjectConfigApi)
  .add(FeaturesApi)
  .add(ProjectFeaturesApi)
  .add(ProvidersApi)
  .add(ProjectProvidersApi)
  .add(AuditApi)
  .add(DeveloperAccessApi)
  .add(DevelopersApi)
  .add(ProjectsApi)
  .add(ProjectApi)
  .add(ProjectViewApi)
  .add(PlatformApi)
  .add(SystemApi)
  .annotate(HttpApi.ParseOptions, { errors: "all" })
  .annotateMerge(
    OpenApi.annotations({
      title: "Player backend",
      version: "1",
      description: `Sign-in, rooms, matchmaking, channels and config for web and mobile games.\n${realtimeReference()}`
    })
  ) {}
