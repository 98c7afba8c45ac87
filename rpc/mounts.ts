/**
 * Operator endpoints. Each is declared once and mounted twice: under `/v1/admin` for a secret key, and
 * under a project's environment for a developer of that project. Both mounts provide
 * `CurrentEnvironment` and `CurrentActor`, so one handler serves them.
 *
 * A group is a function of its name and of the parameters that its mount adds to every path:
 *
 *     const features = <Id extends string, P extends MountParams>(id: Id, params: P) =>
 *       HttpApiGroup.make(id).add(HttpApiEndpoint.get("list", "/features", { params, success }))
 *
 *     class FeaturesApi extends underKey(features("features", keyParams)) {}
 *     class ProjectFeaturesApi extends underProject(features("projectFeatures", projectParams)) {}
 *
 * An endpoint with parameters of its own declares `params: { ...params, playerId: PlayerId }`.
 */
import { Schema } from "effect"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import {
  DeveloperSession,
  EnvironmentMember,
  FeatureGate,
  PlayerInPath,
  ProjectMember,
  Requests,
  SecretKey
} from "./auth.ts"
import { tagMount } from "./feature.ts"

/** Path parameters of {@link underKey}: none. */
export const keyParams = {}

/** Path parameters of {@link underMember}. The `ProjectMember` middleware validates them. */
export const memberParams = {
  projectId: Schema.String.annotate({ description: "Id of the project." })
}

/** Path parameters of {@link underProject}. */
export const projectParams = {
  ...memberParams,
  env: Schema.String.annotate({ description: "`development` or `production`." })
}

/** Path parameters of {@link forPlayer}. The `PlayerInPath` middleware validates them. */
export const playerParams = {
  playerId: Schema.String.annotate({ description: "Id of the player: `pl_...`" })
}

/** The path parameters of either mount. */
export type MountParams = typeof keyParams | typeof projectParams

/** The path parameters of a player's endpoints: those of the player itself, or of {@link forPlayer}. */
export type PlayerMountParams = typeof keyParams | typeof playerParams

/** Mounts a group under `/v1/admin/...`, for a secret key. */
export const underKey = <Id extends string, E extends HttpApiEndpoint.Constraint>(
  group: HttpApiGroup.HttpApiGroup<Id, E>
) => tagMount(group, "server").prefix("/v1/admin").middleware(Requests).middleware(SecretKey)

/** Mounts a group under `/v1/projects/:projectId/environments/:env/...`, for a developer session. */
export const underProject = <Id extends string, E extends HttpApiEndpoint.Constraint>(
  group: HttpApiGroup.HttpApiGroup<Id, E>
) =>
  tagMount(group, "project")
    .prefix("/v1/projects/:projectId/environments/:env")
    .middleware(Requests)
    .middleware(EnvironmentMember)
    .middleware(DeveloperSession)

/**
 * Mounts a player's own endpoints under `/v1/admin/players/:playerId/...`, for a server that acts for
 * the player. The handlers are those of the player's own requests.
 */
export const forPlayer = <Id extends string, E extends HttpApiEndpoint.Constraint>(
  group: HttpApiGroup.HttpApiGroup<Id, E>
) =>
  group
    .prefix("/v1/admin/players/:playerId")
    .middleware(Requests)
    .middleware(PlayerInPath)
    .middleware(FeatureGate)
    .middleware(SecretKey)

/**
 * Mounts a group under `/v1/projects/:projectId/...`, for a developer session. Declare {@link
 * memberParams}.
 */
export const underMember = <Id extends string, E extends HttpApiEndpoint.Constraint>(
  group: HttpApiGroup.HttpApiGroup<Id, E>
) =>
  tagMount(group, "project")
    .prefix("/v1/projects/:projectId")
    .middleware(Requests)
    .middleware(ProjectMember)
    .middleware(DeveloperSession)
