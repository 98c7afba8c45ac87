/**
 * Projects as their members manage them (spec section 4.9, decisions 3.13.3): making, renaming, keys,
 * removal. A project is hidden in one step: from then on nobody sees it, no key opens it, and what is
 * alive of it ends on every node within a second. What is stored of it follows in steps, and goes on
 * after a restart.
 */
import { Context, DateTime, Effect, Fiber, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { CurrentActor, EnvironmentName, KeyKind } from "#rpc/auth"
import { NameReserved, NotFound, TooManyKeys, TooManyProjects } from "#rpc/errors/codes"
import { type DeveloperId, type EnvironmentId, KeyId, type ProjectId } from "#rpc/ids"
import { projects as limits } from "#rpc/limits"
import { normalizeProjectName, type Project, type ProjectKey } from "#rpc/projects"
import { type ListedKey, ManagementRepository } from "#sql/projects/management"
import type { ProjectRow } from "#sql/projects/repository"
import { sweepDaily } from "#server/platform/database"
import { Invalidation } from "#server/platform/invalidation"
import { Audit } from "../audit/service.ts"
import type { CreatedProject } from "./creation.ts"
import { Environments } from "./environments.ts"
import { isReservedName } from "./reserved-names.ts"

/** Players removed by one statement, each with all that is theirs. */
const playersPerStep = 500

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

/** A project under a new name, or its old one. */
export interface RenameResult {
  readonly project: Project
  readonly previousName: string
  readonly changed: boolean
}

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
    /** Whether the name would change, and may. */
    readonly isNewName: (
      projectId: ProjectId,
      name: string
    ) => Effect.Effect<boolean, NameReserved | NotFound>
    readonly rename: (projectId: ProjectId, name: string) => Effect.Effect<RenameResult, NotFound>
    /** Removes a project and everything of it. */
    readonly remove: (projectId: ProjectId) => Effect.Effect<void, never, CurrentActor>
    readonly createKey: (
      environmentId: EnvironmentId,
      kind: KeyKind
    ) => Effect.Effect<{ readonly key: ProjectKey; readonly plain: string }, TooManyKeys>
    readonly revokeKey: (
      projectId: ProjectId,
      keyId: string
    ) => Effect.Effect<{ readonly id: KeyId; readonly revokedAt: string }, NotFound, CurrentActor>
    /** The keys of an environment that are not revoked. */
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

const makeFind = Effect.map(ManagementRepository, (rows) =>
  Effect.fnUntraced(function* (projectId: ProjectId) {
    const found = yield* rows.find(projectId)
    if (Option.isNone(found)) return yield* new NotFound()
    return projectView(found.value, yield* rows.keys([projectId]))
  })
)

const makeReads = Effect.gen(function* () {
  const rows = yield* ManagementRepository
  return {
    find: yield* makeFind,
    list: Effect.fn("Projects.list")(function* (developerId: DeveloperId) {
      const projects = yield* rows.ofDeveloper(developerId)
      const keys = yield* rows.keys(projects.map(({ id }) => id))
      return projects.map((project) => projectView(project, keys))
    })
  }
})

const makeCreate = Effect.gen(function* () {
  const audit = yield* Audit
  const rows = yield* ManagementRepository
  const environments = yield* Environments
  const sql = yield* SqlClient.SqlClient
  const find = yield* makeFind
  const store = Effect.fnUntraced(function* (developerId: DeveloperId, name: string) {
    yield* rows.holdDeveloper(developerId)
    if ((yield* rows.countProjects(developerId)) >= limits.perDeveloper) {
      return yield* new TooManyProjects({ details: { limit: limits.perDeveloper } })
    }
    const created = yield* environments.createProject(name, developerId)
    const target = { kind: "project", id: created.projectId }
    yield* audit.record(created, { action: "project.create", target, details: { name } })
    return created
  })
  return Effect.fn("Projects.create")(function* (developerId: DeveloperId, given: string) {
    const name = normalizeProjectName(given)
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
  const rows = yield* ManagementRepository
  const sql = yield* SqlClient.SqlClient
  const find = yield* makeFind
  const change = Effect.fnUntraced(function* (projectId: ProjectId, name: string) {
    const held = yield* rows.holdProject(projectId)
    if (Option.isNone(held)) return yield* new NotFound()
    const { name: previousName } = held.value
    const changed = previousName !== name
    if (changed) yield* rows.rename({ projectId, name })
    return { previousName, changed }
  })
  return {
    isNewName: Effect.fn("Projects.isNewName")(function* (projectId: ProjectId, given: string) {
      const name = normalizeProjectName(given)
      const found = yield* rows.find(projectId)
      if (Option.isNone(found)) return yield* new NotFound()
      if (found.value.name === name) return false
      return isReservedName(name) ? yield* new NameReserved() : true
    }),
    rename: Effect.fn("Projects.rename")(function* (projectId: ProjectId, given: string) {
      const name = normalizeProjectName(given)
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
  const rows = yield* ManagementRepository
  const environments = yield* Environments
  const sql = yield* SqlClient.SqlClient
  const store = Effect.fnUntraced(function* (environmentId: EnvironmentId, kind: KeyKind) {
    yield* rows.holdEnvironment(environmentId)
    if ((yield* rows.countKeys(environmentId)) >= limits.keysPerEnvironment) {
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
      const found = yield* rows.key(keyId)
      return { key: keyView(found), plain }
    }),
    revokeKey: Effect.fn("Projects.revokeKey")(function* (projectId: ProjectId, given: string) {
      if (!isKeyId(given)) return yield* new NotFound()
      const found = yield* rows.environmentOfKey({ projectId, keyId: given })
      if (Option.isNone(found)) return yield* new NotFound()
      const { environmentId, keyId } = found.value
      const key = (yield* rows.keys([projectId])).find(({ id }) => id === keyId)
      const scope = key === undefined ? { projectId } : { projectId, name: key.environment }
      const revoke = environments.revokeKey(environmentId, keyId)
      const revokedAt = yield* audit.recordChange(scope, revoke, () => {
        // A key that is revoked already is not listed.
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
      const keys = yield* rows.keys([projectId])
      return keys.filter((key) => key.environment === environment).map(keyView)
    })
  }
})

const makeRemove = Effect.gen(function* () {
  const audit = yield* Audit
  const rows = yield* ManagementRepository
  const invalidation = yield* Invalidation
  const sql = yield* SqlClient.SqlClient
  const scope = yield* Effect.scope

  /** Its keys open nothing; without a config, whatever is alive of it is off and ends. */
  const hide = Effect.fnUntraced(function* (projectId: ProjectId) {
    const held = yield* rows.holdProject(projectId)
    const ids = yield* rows.environments(projectId)
    const keys = yield* rows.hide(projectId, ids, yield* DateTime.now)
    yield* Effect.forEach(keys, (id) => invalidation.publish({ kind: "key", id }))
    yield* Effect.forEach(ids, (id) => invalidation.publish({ kind: "config", id }))
    if (Option.isNone(held)) return
    const target = { kind: "project", id: projectId }
    const details = { name: held.value.name }
    yield* audit.record({ projectId }, { action: "project.delete", target, details })
  })

  /** What is stored of it, a step at a time. */
  const clear = Effect.fnUntraced(function* (projectId: ProjectId) {
    const ids = yield* rows.environments(projectId)
    yield* Effect.repeat(rows.dropPlayers(ids, playersPerStep), {
      until: (removed) => removed === 0
    })
    yield* rows.drop(projectId, ids)
  })

  yield* sweepDaily("Removed projects", () =>
    Effect.flatMap(rows.removed, (ids) => Effect.forEach(ids, clear, { discard: true }))
  )
  return Effect.fn("Projects.remove")(function* (projectId: ProjectId) {
    yield* Effect.orDie(sql.withTransaction(hide(projectId)))
    // It goes on when whoever asked for it does not wait.
    const clearing = yield* Effect.forkIn(clear(projectId), scope)
    yield* Fiber.join(clearing)
  })
})
