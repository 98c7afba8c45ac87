/**
 * Projects, API keys, and the dashboard's reads of an environment, for developers. A developer who is
 * not a member of a project gets 404.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { AnyKey, DeveloperSession, EnvironmentName, KeyKind, Requests } from "../auth.ts"
import { NameReserved, NotFound, RateLimited, TooManyProjects, wire } from "../errors/codes.ts"
import { group } from "../feature.ts"
import { KeyId, ProjectId } from "../ids.ts"
import { memberParams, underMember } from "../mounts.ts"
import { Deleted } from "../responses.ts"
import { nameUpTo, Timestamp } from "../text.ts"
import { projectLimits } from "./limits.ts"

/** A project's name: 1 to 80 characters. */
export const ProjectName = nameUpTo(projectLimits.nameMaxCharacters)

/** The host name label of a project's apps. Two hyphens in a row would name a version. */
const Slug = Schema.String.check(
  Schema.makeFilter((text: string) =>
    text.length >= 3 && text.length <= 40 && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(text)
      ? undefined
      : "Expected 3 to 40 of a-z, 0-9 and single hyphens between them"
  )
)

/**
 * An API key. `prefix` is its first eight characters. `plain` is the full publishable key, and null for
 * a secret key, which is shown only once after creation. `lastUsedAt` is some seconds behind.
 */
export const ProjectKey = Schema.Struct({
  id: KeyId,
  kind: KeyKind,
  prefix: Schema.String,
  plain: Schema.NullOr(Schema.String),
  createdAt: Timestamp,
  lastUsedAt: Schema.NullOr(Timestamp)
}).annotate({
  identifier: "ProjectKey",
  description:
    "An API key. `plain` is null for a secret key, which is shown once after its creation."
})
export type ProjectKey = typeof ProjectKey.Type

/** A project with the active keys of its environments. The slug never changes. */
export const Project = Schema.Struct({
  id: ProjectId,
  name: Schema.String,
  slug: Schema.String,
  createdAt: Timestamp,
  environments: Schema.Array(
    Schema.Struct({ name: EnvironmentName, keys: Schema.Array(ProjectKey) })
  )
}).annotate({
  identifier: "Project",
  description: "A project with the active keys of its environments. The slug never changes."
})
export type Project = typeof Project.Type

const PlainKeys = Schema.Struct({
  publishableKey: Schema.String,
  secretKey: Schema.String
}).annotate({
  identifier: "PlainKeys",
  description: "The keys of an environment in plain text. The secret key is shown only here."
})

/** A deleted project. `POST /v1/projects/:projectId/restore` brings it back until `restorableUntil`. */
export const DeletedProject = Schema.Struct({
  id: ProjectId,
  name: Schema.String,
  slug: Schema.String,
  deletedAt: Timestamp,
  restorableUntil: Timestamp
}).annotate({
  identifier: "DeletedProject",
  description: "A deleted project, which can be restored until `restorableUntil`."
})
export type DeletedProject = typeof DeletedProject.Type

/** What a key opens. A tool that labels keys compares the labels with it. */
export const KeyDescription = Schema.Struct({
  kind: KeyKind,
  prefix: Schema.String,
  environment: EnvironmentName,
  project: Schema.Struct({ id: ProjectId, name: Schema.String, slug: Schema.String })
}).annotate({
  identifier: "KeyDescription",
  description: "What the key of the request opens: its kind, environment and project."
})
export type KeyDescription = typeof KeyDescription.Type

/** `/v1/key`: what the key of the request opens. */
export class KeyApi extends group(
  "key",
  "server",
  "Key",
  "What a key opens, for tools that store keys under a name."
)
  .add(
    HttpApiEndpoint.get("describe", "/key", {
      success: KeyDescription,
      error: [wire(RateLimited), wire(NotFound)]
    }).annotate(OpenApi.Summary, "Read kind, environment and project of the key")
  )
  .prefix("/v1")
  .middleware(Requests)
  .middleware(AnyKey) {}

const projectResponse = Schema.Struct({ project: Project }).annotate({
  identifier: "ProjectResponse",
  description: "One project."
})

/** `/v1/projects`: the developer's projects. */
export class ProjectsApi extends group(
  "projects",
  "project",
  "Projects",
  "Listing and creating the developer's projects."
)
  .add(
    HttpApiEndpoint.get("list", "/projects", {
      success: Schema.Struct({
        projects: Schema.Array(Project),
        deleted: Schema.Array(DeletedProject)
      }).annotate({
        identifier: "ProjectList",
        description: "The developer's projects, and those deleted within seven days."
      })
    }).annotate(OpenApi.Summary, "List the projects that this developer is a member of"),
    HttpApiEndpoint.post("create", "/projects", {
      payload: Schema.Struct({ name: ProjectName, slug: Schema.optionalKey(Slug) }),
      success: Schema.Struct({
        project: Project,
        plainKeys: Schema.Struct({ development: PlainKeys, production: PlainKeys })
      }).annotate({
        identifier: "CreatedProject",
        description: "A new project with the keys of both environments."
      }),
      error: [wire(NameReserved), wire(TooManyProjects)]
    }).annotate(
      OpenApi.Summary,
      "Create a project; the response shows its keys in plain text once"
    ),
    HttpApiEndpoint.post("restore", "/projects/:projectId/restore", {
      params: memberParams,
      success: projectResponse,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "Restore a project that was deleted less than seven days ago")
  )
  .prefix("/v1")
  .middleware(Requests)
  .middleware(DeveloperSession) {}

/** `/v1/projects/:projectId`: one project, for its members. */
export class ProjectApi extends underMember(
  group(
    "project",
    "project",
    "Project",
    "Renaming and deleting one project, and revoking its keys."
  ).add(
    HttpApiEndpoint.get("get", "/", { params: memberParams, success: projectResponse }).annotate(
      OpenApi.Summary,
      "Read a project"
    ),
    HttpApiEndpoint.patch("rename", "/", {
      params: memberParams,
      payload: Schema.Struct({ name: ProjectName }),
      success: Schema.Struct({
        project: Project,
        previousName: Schema.String,
        changed: Schema.Boolean
      }).annotate({
        identifier: "RenamedProject",
        description: "The project after a rename. `changed` is false if it already had the name."
      }),
      error: wire(NameReserved)
    }).annotate(OpenApi.Summary, "Rename a project"),
    HttpApiEndpoint.delete("delete", "/", {
      params: memberParams,
      success: Schema.Struct({ ...Deleted.fields, restorableUntil: Timestamp }).annotate({
        identifier: "ProjectDeleted",
        description: "The project is closed. Its data is removed after `restorableUntil`."
      })
    }).annotate(
      OpenApi.Summary,
      "Close a project at once, and remove all its data after seven days"
    ),
    HttpApiEndpoint.delete("revokeKey", "/keys/:keyId", {
      params: { ...memberParams, keyId: Schema.String },
      success: Schema.Struct({
        key: Schema.Struct({ id: KeyId, revokedAt: Timestamp })
      }).annotate({
        identifier: "RevokedKey",
        description: "A key that no longer authenticates."
      }),
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "Revoke a key on all nodes within a second")
  )
) {}
