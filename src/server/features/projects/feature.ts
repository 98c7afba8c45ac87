/** Projects, as the service composes them. */
import { Effect, Layer } from "effect"
import { projectsFeature } from "#rpc/projects/feature"
import { DeletionRepository } from "#sql/projects/deletion"
import { ManagementRepository } from "#sql/projects/management"
import { PlayerListRepository } from "#sql/projects/player-list"
import { MemberRepository, ProjectRepository } from "#sql/projects/repository"
import { RequestCountRepository } from "#sql/projects/requests"
import { UsageRepository } from "#sql/projects/usage"
import { ViewRepository } from "#sql/projects/view"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { Environments } from "./environments.ts"
import { ProjectsHttp } from "./handlers.ts"

const part = Effect.map(UsageRepository, (repository) => ({
  read: (player: StoredPlayer) => Effect.map(repository.daysOf(player), (days) => ({ days }))
}))

export const projects = {
  repositories: Layer.mergeAll(
    DeletionRepository.layer,
    ManagementRepository.layer,
    MemberRepository.layer,
    ProjectRepository.layer,
    PlayerListRepository.layer,
    RequestCountRepository.layer,
    UsageRepository.layer,
    ViewRepository.layer
  ),
  services: Environments.layer,
  routes: ProjectsHttp,
  player: playerPart(
    projectsFeature,
    [{ table: "player_days", exportedAs: "days", deletion: "cascade" }],
    part
  )
}
