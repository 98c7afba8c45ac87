/** Project management for members: creation, renaming, keys and deletion. */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { CurrentActor, EnvironmentName, KeyKind } from "#rpc/auth"
import {
  type InvalidRequest,
  NameReserved,
  NotFound,
  TooManyKeys,
  TooManyProjects
} from "#rpc/errors/codes"
import { type DeveloperId, type EnvironmentId, KeyId, type ProjectId } from "#rpc/ids"
import { projectLimits } from "#rpc/projects/limits"
import type { DeletedProject, Project, ProjectKey } from "#rpc/projects/projects"
import { normalizeName } from "#rpc/text"
import { type ListedKey, ManagementRepository } from "#sql/projects/management"
import type { ProjectRow } from "#sql/projects/repository"
import { invalidField } from "#server/platform/invalid-request"
import { Audit } from "../audit/service.ts"
import type { CreatedProject } from "./creation.ts"
import { makeDeletion } from "./deletion.ts"
import { Environments } from "./environments.ts"
import { isReservedName, isReservedSlug } from "./reserved-names.ts"

const isKeyId = Schema.is(KeyId)

const environmentNames: ReadonlyArray<EnvironmentName> = ["development", "production"]

const isoOf = (time: DateTime.Utc | null) => (time === null ? null : DateTime.formatIso(time))

const keyView = ({ createdAt, id, kind, lastUsedAt, plain, prefix }: ListedKey): ProjectKey => ({
  id,
  kind,
  prefix,
  plain,
  createdAt: DateTime.formatIso(createdAt),
  lastUsedAt: isoOf(lastUsedAt)
})

const projectView = (
  { createdAt, id, name, slug }: ProjectRow,
  keys: ReadonlyArray<ListedKey>
): Project => ({
  id,
  name,
  slug,
  createdAt: DateTime.formatIso(createdAt),
  environments: environmentNames.map((environment) => ({
    name: environment,
    keys: keys.filter((key) => key.projectId === id && key.environment === environment).map(keyView)
  }))
})

/** Result of a rename; `changed` is false when the project already had the name. */
export interface RenameResult {
  readonly project: Project
  readonly previousName: string
  readonly changed: boolean
}

/** Manages the projects of developers. */
export class Projects extends Context.Service<
  Projects,
  {
    readonly list: (developerId: DeveloperId) => Effect.Effect<ReadonlyArray<Project>>
    readonly create: (
      developerId: DeveloperId,
      name: string,
      slug?: string
    ) => Effect.Effect<
      { readonly project: Project; readonly plainKeys: CreatedProject["keys"] },
      InvalidRequest | NameReserved | TooManyProjects,
      CurrentActor
    >
    readonly find: (projectId: ProjectId) => Effect.Effect<Project, NotFound>
    /** Whether a rename would change the name; fails with `name_reserved` for a reserved name. */
    readonly isNewName: (
      projectId: ProjectId,
      name: string
    ) => Effect.Effect<boolean, NameReserved | NotFound>
    readonly rename: (projectId: ProjectId, name: string) => Effect.Effect<RenameResult, NotFound>
    /** Closes a project at once. Returns the time until which members can restore it. */
    readonly remove: (projectId: ProjectId) => Effect.Effect<string, NotFound, CurrentActor>
    /** Restores a deleted project of a member. */
    readonly restore: (
      developerId: DeveloperId,
      projectId: string
    ) => Effect.Effect<Project, NotFound, CurrentActor>
    /** Returns the deleted projects that a member can restore. */
    readonly listDeleted: (developerId: DeveloperId) => Effect.Effect<ReadonlyArray<DeletedProject>>
    readonly createKey: (
      environmentId: EnvironmentId,
      kind: KeyKind
    ) => Effect.Effect<{ readonly key: ProjectKey; readonly plain: string }, TooManyKeys>
    readonly revokeKey: (
      projectId: ProjectId,
      keyId: string
    ) => Effect.Effect<{ readonly id: KeyId; readonly revokedAt: string }, NotFound, CurrentActor>
    /** Returns the active keys of an environment. */
    readonly keys: (
      projectId: ProjectId,
      environment: EnvironmentName
    ) => Effect.Effect<ReadonlyArray<ProjectKey>>
  }
>()("server/features/projects/service/Projects") {
  static readonly layer = Layer.effect(
    Projects,
    Effect.gen(function* () {
      const find = yield* makeFind
      const { listDeleted, remove, restore } = yield* makeDeletion
      return Projects.of({
        ...(yield* makeReads),
        ...(yield* makeNames),
        ...(yield* makeKeys),
        create: yield* makeCreate,
        listDeleted,
        remove,
        restore: (developerId, projectId) => Effect.flatMap(restore(developerId, projectId), find)
      })
    })
  )
}

const makeFind = Effect.map(ManagementRepository, (repository) =>
  Effect.fnUntraced(function* (projectId: ProjectId) {
    const found = yield* repository.find(projectId)
    if (Option.isNone(found)) return yield* new NotFound()
    return projectView(found.value, yield* repository.keys([projectId]))
  })
)

const makeReads = Effect.gen(function* () {
  const repository = yield* ManagementRepository
  return {
    find: yield* makeFind,
    list: Effect.fn("Projects.list")(function* (developerId: DeveloperId) {
      const projects = yield* repository.listByDeveloper(developerId)
      const keys = yield* repository.keys(projects.map(({ id }) => id))
      return projects.map((project) => projectView(project, keys))
    })
  }
})

const slugTaken = invalidField("slug", "Another project has this slug. Choose another one.")

const makeCreate = Effect.gen(function* () {
  const audit = yield* Audit
  const repository = yield* ManagementRepository
  const environments = yield* Environments
  const sql = yield* SqlClient.SqlClient
  const find = yield* makeFind
  const store = Effect.fnUntraced(function* (
    developerId: DeveloperId,
    name: string,
    slug?: string
  ) {
    yield* repository.lockDeveloper(developerId)
    if ((yield* repository.countProjects(developerId)) >= projectLimits.perDeveloper) {
      return yield* new TooManyProjects({ details: { limit: projectLimits.perDeveloper } })
    }
    const created = yield* slug === undefined
      ? environments.createProject(name, developerId)
      : environments.createProjectAs(slug, name, developerId)
    const target = { kind: "project", id: created.projectId }
    yield* audit.record(created, { action: "project.create", target, details: { name } })
    return created
  })
  return Effect.fn("Projects.create")(function* (
    developerId: DeveloperId,
    rawName: string,
    slug?: string
  ) {
    const name = normalizeName(rawName)
    if ([name, slug ?? name].some(isReservedName)) return yield* new NameReserved()
    if (slug !== undefined && isReservedSlug(slug)) return yield* slugTaken
    const { keys: plainKeys, projectId } = yield* Effect.catchTags(
      sql.withTransaction(store(developerId, name, slug)),
      { SqlError: Effect.die, SlugTaken: () => Effect.fail(slugTaken) }
    )
    return { project: yield* Effect.orDie(find(projectId)), plainKeys }
  })
})

const makeNames = Effect.gen(function* () {
  const repository = yield* ManagementRepository
  const sql = yield* SqlClient.SqlClient
  const find = yield* makeFind
  const change = Effect.fnUntraced(function* (projectId: ProjectId, name: string) {
    const locked = yield* repository.lockProject(projectId)
    if (Option.isNone(locked)) return yield* new NotFound()
    const { name: previousName } = locked.value
    const changed = previousName !== name
    if (changed) yield* repository.rename({ projectId, name })
    return { previousName, changed }
  })
  return {
    isNewName: Effect.fn("Projects.isNewName")(function* (projectId: ProjectId, rawName: string) {
      const name = normalizeName(rawName)
      const found = yield* repository.find(projectId)
      if (Option.isNone(found)) return yield* new NotFound()
      if (found.value.name === name) return false
      return isReservedName(name) ? yield* new NameReserved() : true
    }),
    rename: Effect.fn("Projects.rename")(function* (projectId: ProjectId, rawName: string) {
      const name = normalizeName(rawName)
      const renamed = yield* Effect.catchTag(
        sql.withTransaction(change(projectId, name)),
        "SqlError",
        Effect.die
      )
      return { project: yield* find(projectId), ...renamed }
    })
  }
})

const makeKeys = Effect.gen(function* () {
  const audit = yield* Audit
  const repository = yield* ManagementRepository
  const environments = yield* Environments
  const sql = yield* SqlClient.SqlClient
  const store = Effect.fnUntraced(function* (environmentId: EnvironmentId, kind: KeyKind) {
    yield* repository.lockEnvironment(environmentId)
    if ((yield* repository.countKeys(environmentId)) >= projectLimits.keysPerEnvironment) {
      return yield* new TooManyKeys({ details: { limit: projectLimits.keysPerEnvironment } })
    }
    return yield* environments.createKey(environmentId, kind)
  })
  return {
    createKey: Effect.fn("Projects.createKey")(function* (
      environmentId: EnvironmentId,
      kind: KeyKind
    ) {
      const { keyId, plain } = yield* Effect.catchTag(
        sql.withTransaction(store(environmentId, kind)),
        "SqlError",
        Effect.die
      )
      const found = yield* repository.key(keyId)
      return { key: keyView(found), plain }
    }),
    revokeKey: Effect.fn("Projects.revokeKey")(function* (projectId: ProjectId, rawKeyId: string) {
      if (!isKeyId(rawKeyId)) return yield* new NotFound()
      const found = yield* repository.environmentOfKey({ projectId, keyId: rawKeyId })
      if (Option.isNone(found)) return yield* new NotFound()
      const { environmentId, keyId } = found.value
      const key = (yield* repository.keys([projectId])).find(({ id }) => id === keyId)
      const scope = key === undefined ? { projectId } : { projectId, name: key.environment }
      const revoke = environments.revokeKey(environmentId, keyId)
      const revokedAt = yield* audit.recordChange(scope, revoke, () => {
        // An already revoked key is not listed: the repeated call gets no audit entry.
        if (key === undefined) return
        const { kind, prefix } = key
        return {
          action: "key.revoke",
          target: { kind: "key", id: keyId },
          details: { kind, prefix }
        }
      })
      if (Option.isNone(revokedAt)) return yield* new NotFound()
      return { id: keyId, revokedAt: DateTime.formatIso(revokedAt.value) }
    }),
    keys: Effect.fnUntraced(function* (projectId: ProjectId, environment: EnvironmentName) {
      const keys = yield* repository.keys([projectId])
      return keys.filter((key) => key.environment === environment).map(keyView)
    })
  }
})
