/**
 * Project management for members: creation, renaming, keys and removal.
 *
 * Removal has two phases. One transaction hides the project: members lose it, its keys stop working,
 * and its rooms, queues and channels close on every node within a second. Then batches delete its
 * stored data; a daily sweep finishes batches that a restart interrupted.
 */
import { Context, DateTime, Effect, Fiber, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { CurrentActor, EnvironmentName, KeyKind } from "#rpc/auth"
import { NameReserved, NotFound, TooManyKeys, TooManyProjects } from "#rpc/errors/codes"
import { type DeveloperId, type EnvironmentId, KeyId, type ProjectId } from "#rpc/ids"
import { projects as limits } from "#rpc/limits"
import type { Project, ProjectKey } from "#rpc/projects"
import { normalizeName } from "#rpc/text"
import { type ListedKey, ManagementRepository } from "#sql/projects/management"
import type { ProjectRow } from "#sql/projects/repository"
import { sweepDaily } from "#server/platform/database"
import { Invalidation } from "#server/platform/invalidation"
import { Audit } from "../audit/service.ts"
import type { CreatedProject } from "./creation.ts"
import { Environments } from "./environments.ts"
import { isReservedName } from "./reserved-names.ts"

/** Players that one statement deletes, with all rows that reference them. */
const playersPerBatch = 500

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
      name: string
    ) => Effect.Effect<
      { readonly project: Project; readonly plainKeys: CreatedProject["keys"] },
      NameReserved | TooManyProjects,
      CurrentActor
    >
    readonly find: (projectId: ProjectId) => Effect.Effect<Project, NotFound>
    /** Whether a rename would change the name; fails with `name_reserved` for a reserved name. */
    readonly isNewName: (
      projectId: ProjectId,
      name: string
    ) => Effect.Effect<boolean, NameReserved | NotFound>
    readonly rename: (projectId: ProjectId, name: string) => Effect.Effect<RenameResult, NotFound>
    /** Removes a project with all its data. Returns when the data is deleted. */
    readonly remove: (projectId: ProjectId) => Effect.Effect<void, never, CurrentActor>
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
      return Projects.of({
        ...(yield* makeReads),
        ...(yield* makeNames),
        ...(yield* makeKeys),
        create: yield* makeCreate,
        remove: yield* makeRemove
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

const makeCreate = Effect.gen(function* () {
  const audit = yield* Audit
  const repository = yield* ManagementRepository
  const environments = yield* Environments
  const sql = yield* SqlClient.SqlClient
  const find = yield* makeFind
  const store = Effect.fnUntraced(function* (developerId: DeveloperId, name: string) {
    yield* repository.lockDeveloper(developerId)
    if ((yield* repository.countProjects(developerId)) >= limits.perDeveloper) {
      return yield* new TooManyProjects({ details: { limit: limits.perDeveloper } })
    }
    const created = yield* environments.createProject(name, developerId)
    const target = { kind: "project", id: created.projectId }
    yield* audit.record(created, { action: "project.create", target, details: { name } })
    return created
  })
  return Effect.fn("Projects.create")(function* (developerId: DeveloperId, rawName: string) {
    const name = normalizeName(rawName)
    if (isReservedName(name)) return yield* new NameReserved()
    const { keys: plainKeys, projectId } = yield* Effect.catchTag(
      sql.withTransaction(store(developerId, name)),
      "SqlError",
      Effect.die
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
    if ((yield* repository.countKeys(environmentId)) >= limits.keysPerEnvironment) {
      return yield* new TooManyKeys({ details: { limit: limits.keysPerEnvironment } })
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

const makeRemove = Effect.gen(function* () {
  const audit = yield* Audit
  const repository = yield* ManagementRepository
  const invalidation = yield* Invalidation
  const sql = yield* SqlClient.SqlClient
  const scope = yield* Effect.scope

  /** Deletes keys and configs. Without a config every feature is off, so live entities stop. */
  const hide = Effect.fnUntraced(function* (projectId: ProjectId) {
    const locked = yield* repository.lockProject(projectId)
    const ids = yield* repository.environments(projectId)
    const keys = yield* repository.hide(projectId, ids, yield* DateTime.now)
    yield* Effect.forEach(keys, (id) => invalidation.publish({ kind: "key", id }))
    yield* Effect.forEach(ids, (id) => invalidation.publish({ kind: "config", id }))
    if (Option.isNone(locked)) return
    const target = { kind: "project", id: projectId }
    const details = { name: locked.value.name }
    yield* audit.record({ projectId }, { action: "project.delete", target, details })
  })

  /** Deletes the stored data of a hidden project in batches. */
  const deleteData = Effect.fnUntraced(function* (projectId: ProjectId) {
    const ids = yield* repository.environments(projectId)
    yield* Effect.repeat(repository.deletePlayers(ids, playersPerBatch), {
      until: (removed) => removed === 0
    })
    yield* repository.deleteProject(projectId, ids)
  })

  yield* sweepDaily("Removed projects", () =>
    Effect.flatMap(repository.listRemoved, (ids) =>
      Effect.forEach(ids, deleteData, { discard: true })
    )
  )
  return Effect.fn("Projects.remove")(function* (projectId: ProjectId) {
    yield* Effect.orDie(sql.withTransaction(hide(projectId)))
    // The deletion continues when the caller disconnects.
    const deletion = yield* Effect.forkIn(deleteData(projectId), scope)
    yield* Fiber.join(deletion)
  })
})
