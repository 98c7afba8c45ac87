/**
 * Operating endpoints (spec section 4.8): each is declared once and mounted twice, under `/v1/admin`
 * for a secret key and under a project's environment for a developer of that project. Both mounts
 * provide `CurrentEnvironment` and `CurrentActor`, so one handler serves them.
 *
 * A group is a function of its name and of the parameters that its mount adds to every path:
 *
 *     const features = <Id extends string, P extends MountParams>(id: Id, params: P) =>
 *       HttpApiGroup.make(id).add(HttpApiEndpoint.get("list", "/features", { params, success }))
 *
 *     class FeaturesApi extends underKey(features("features", keyParams)) {}
 *     class ProjectFeaturesApi extends underProject(features("projectFeatures", projectParams)) {}
 *
 * An endpoint with parameters of its own says `params: { ...params, playerId: PlayerId }`.
 */
import { Schema } from "effect"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { DeveloperSession, EnvironmentMember, ProjectMember, Requests, SecretKey } from "./auth.ts"

/** What the paths of {@link underKey} add to an endpoint's parameters: nothing. */
export const keyParams = {}

/** What `/v1/projects/:projectId` adds; the member's middleware says what they must be. */
export const memberParams = { projectId: Schema.String }

/** What the paths of {@link underProject} add. */
export const projectParams = { ...memberParams, env: Schema.String }

/** Either of the mounts' parameters. */
export type MountParams = typeof keyParams | typeof projectParams

/** `/v1/admin/...` with a secret key. */
export const underKey = <Id extends string, E extends HttpApiEndpoint.Constraint>(
  group: HttpApiGroup.HttpApiGroup<Id, E>
) => group.prefix("/v1/admin").middleware(Requests).middleware(SecretKey)

/** `/v1/projects/:projectId/environments/:env/...` with a developer's session. */
export const underProject = <Id extends string, E extends HttpApiEndpoint.Constraint>(
  group: HttpApiGroup.HttpApiGroup<Id, E>
) =>
  group
    .prefix("/v1/projects/:projectId/environments/:env")
    .middleware(Requests)
    .middleware(EnvironmentMember)
    .middleware(DeveloperSession)

/** `/v1/projects/:projectId/...` with a developer's session; parameters: {@link memberParams}. */
export const underMember = <Id extends string, E extends HttpApiEndpoint.Constraint>(
  group: HttpApiGroup.HttpApiGroup<Id, E>
) =>
  group
    .prefix("/v1/projects/:projectId")
    .middleware(Requests)
    .middleware(ProjectMember)
    .middleware(DeveloperSession)
