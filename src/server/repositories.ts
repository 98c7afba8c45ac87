/** Storage: one repository for each feature. */
import { Layer } from "effect"
import { XProfileRepository } from "#sql/share/x-profiles"
import { AgeRepository } from "#sql/ages"
import { AuditRepository } from "#sql/audit"
import { ChannelRepository } from "#sql/channels"
import { ConfigRepository } from "#sql/config"
import { ClosedSignups } from "#sql/developers/closed-signups"
import { DeveloperRepository } from "#sql/developers/repository"
import { SignInLinkRepository } from "#sql/developers/sign-in-links"
import { AppRepository } from "#sql/hosting/apps"
import { BlobRepository } from "#sql/hosting/blobs"
import { DeploymentRepository } from "#sql/hosting/deployments"
import { DomainRepository } from "#sql/hosting/domains"
import { IdempotencyRepository } from "#sql/idempotency"
import { IdentityRepository } from "#sql/identities"
import { MailRepository } from "#sql/mail"
import { CheckoutRepository } from "#sql/money/checkouts"
import { LedgerRepository } from "#sql/money/ledger"
import { MeteringRepository } from "#sql/money/usage"
import { SanctionRepository } from "#sql/moderation"
import { NewsRepository } from "#sql/news"
import { FlowRepository } from "#sql/oauth/flows"
import { ProviderRepository } from "#sql/oauth/providers"
import { ExpiredGuestRepository } from "#sql/player-data/expired-guests"
import { PlayerDataRepository } from "#sql/player-data/repository"
import { PlayerRepository } from "#sql/players"
import { LiveRepository } from "#sql/live/reports"
import { NodeRepository } from "#sql/live/nodes"
import { LiveRoomRepository } from "#sql/live/rooms"
import { DeletionRepository } from "#sql/projects/deletion"
import { ManagementRepository } from "#sql/projects/management"
import { MemberRepository, ProjectRepository } from "#sql/projects/repository"
import { PlayerListRepository } from "#sql/projects/player-list"
import { RequestCountRepository } from "#sql/projects/requests"
import { UsageRepository } from "#sql/projects/usage"
import { ViewRepository } from "#sql/projects/view"
import { RateWindowRepository } from "#sql/rate-windows"
import { RoomRepository } from "#sql/rooms"
import { SaveRepository } from "#sql/saves"
import { ShareLinkRepository } from "#sql/share/links"
import { ShareVisitRepository } from "#sql/share/visits"
import { SessionRepository, SigningKeyRepository } from "#sql/sessions"
import { CodeRepository } from "#sql/single-use-codes"
import { SpentAnswerRepository } from "#sql/spent-answers"
import { StatRepository, WebhookSecretRepository } from "#sql/stats"
import { ThrottleRepository } from "#sql/throttles"
import { FunctionRepositoriesLive } from "./features/functions/layers.ts"

export const RepositoriesLive = Layer.mergeAll(
  AgeRepository.layer,
  AppRepository.layer,
  AuditRepository.layer,
  BlobRepository.layer,
  ChannelRepository.layer,
  CheckoutRepository.layer,
  ClosedSignups.layer,
  CodeRepository.layer,
  ConfigRepository.layer,
  DeveloperRepository.layer,
  IdempotencyRepository.layer,
  IdentityRepository.layer,
  LedgerRepository.layer,
  LiveRepository.layer,
  LiveRoomRepository.layer,
  MailRepository.layer,
  MeteringRepository.layer,
  DeletionRepository.layer,
  DeploymentRepository.layer,
  DomainRepository.layer,
  ManagementRepository.layer,
  MemberRepository.layer,
  NewsRepository.layer,
  NodeRepository.layer,
  ExpiredGuestRepository.layer,
  PlayerDataRepository.layer,
  PlayerRepository.layer,
  ProjectRepository.layer,
  ProviderRepository.layer,
  RoomRepository.layer,
  SanctionRepository.layer,
  SaveRepository.layer,
  SessionRepository.layer,
  ShareLinkRepository.layer,
  SpentAnswerRepository.layer,
  ShareVisitRepository.layer,
  SignInLinkRepository.layer,
  SigningKeyRepository.layer,
  StatRepository.layer,
  FlowRepository.layer,
  FunctionRepositoriesLive,
  PlayerListRepository.layer,
  RateWindowRepository.layer,
  RequestCountRepository.layer,
  ThrottleRepository.layer,
  UsageRepository.layer,
  ViewRepository.layer,
  WebhookSecretRepository.layer,
  XProfileRepository.layer
)
