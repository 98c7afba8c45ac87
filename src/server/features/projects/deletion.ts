/**
 * Deletion of projects. It closes a project at once: its members lose it and its keys stop working. Its
 * rooms, queues, channels and sockets close on every node within a second. A member can restore it for
 * seven days. Then an hourly sweep removes its data in batches, and continues after a restart.
 */
import { DateTime, Effect, Option, Schema } from "effect"
import type { CurrentActor } from "#rpc/auth"
import { NotFound } from "#rpc/errors/codes"
import { type DeveloperId, type EnvironmentId, ProjectId } from "#rpc/ids"
import type { DeletedProject } from "#rpc/projects/projects"
import { secondsPerDay } from "#rpc/units"
import { DeletionRepository } from "#sql/projects/deletion"
import { ManagementRepository } from "#sql/projects/management"
import { BlobStore } from "#server/platform/blobs/store"
import { makeTransaction, sweepHourly } from "#server/platform/database"
import { Invalidation } from "#server/platform/invalidation"
import { Audit } from "../audit/service.ts"
import { FunctionsChanges } from "../functions/changes.ts"
import { FunctionsRuntime } from "../functions/runtime.ts"

/** Time for which a deleted project can be restored; then the service removes its data. */
const restorableSeconds = 7 * secondsPerDay

const isProjectId = Schema.is(ProjectId)

/** Players that one statement deletes, with all rows that reference them. */
const playersPerBatch = 500

const window = { seconds: restorableSeconds }

/** Returns the time until which members can restore a project. */
const restorableUntil = (deletedAt: DateTime.Utc): string =>
  DateTime.formatIso(DateTime.add(deletedAt, window))

/** Deletion time before which a project is due for removal. */
const dueTime = Effect.map(DateTime.now, (now) => DateTime.subtract(now, window))

/** Notifies all nodes that the keys, configs and domains of a project have changed state. */
const makePublish = Effect.map(Invalidation, (invalidation) =>
  Effect.fnUntraced(function* (
    keys: ReadonlyArray<string>,
    environments: ReadonlyArray<EnvironmentId>
  ) {
    yield* Effect.forEach(keys, (id) => invalidation.publish({ kind: "key", id }))
    yield* Effect.forEach(environments, (id) => invalidation.publish({ kind: "config", id }))
    yield* Effect.forEach(environments, (id) => invalidation.publish({ kind: "domains", id }))
  })
)

const makeRemove = Effect.gen(function* () {
  const audit = yield* Audit
  const functions = yield* FunctionsChanges
  const { awaitAcknowledgements } = yield* Invalidation
  const deletions = yield* DeletionRepository
  const repository = yield* ManagementRepository
  const publish = yield* makePublish
  const transaction = yield* makeTransaction
  return Effect.fn("Projects.remove")(function* (
    projectId: ProjectId
  ): Effect.fn.Return<string, NotFound, CurrentActor> {
    const now = yield* DateTime.now
    yield* transaction(
      Effect.gen(function* () {
        const locked = yield* repository.lockProject(projectId)
        if (Option.isNone(locked)) return yield* new NotFound()
        const { name } = locked.value
        const ids = yield* deletions.environments(projectId)
        yield* publish(yield* deletions.close(projectId, ids, now), ids)
        yield* Effect.forEach(ids, functions.publish)
        const target = { kind: "project", id: projectId }
        yield* audit.record({ projectId }, { action: "project.delete", target, details: { name } })
      })
    )
    yield* awaitAcknowledgements
    return restorableUntil(now)
  })
})

const makeRestore = Effect.gen(function* () {
  const audit = yield* Audit
  const functions = yield* FunctionsChanges
  const deletions = yield* DeletionRepository
  const publish = yield* makePublish
  const transaction = yield* makeTransaction
  return Effect.fn("Projects.restore")(function* (
    developerId: DeveloperId,
    projectId: string
  ): Effect.fn.Return<ProjectId, NotFound, CurrentActor> {
    if (!isProjectId(projectId)) return yield* new NotFound()
    const since = yield* dueTime
    const ids = yield* transaction(
      Effect.gen(function* () {
        const locked = yield* deletions.lockDeleted({ developerId, projectId, since })
        if (Option.isNone(locked)) return yield* new NotFound()
        const { deletedAt, name } = locked.value
        const ids = yield* deletions.environments(projectId)
        yield* publish(yield* deletions.reopen(projectId, ids, deletedAt), ids)
        yield* Effect.forEach(ids, functions.publish)
        const target = { kind: "project", id: projectId }
        yield* audit.record({ projectId }, { action: "project.restore", target, details: { name } })
        return ids
      })
    )
    yield* Effect.forEach(ids, functions.awaitApplied, { concurrency: "unbounded" })
    return projectId
  })
})

/** Removes the data of projects whose deletion is at least seven days old. */
export const makeSweep = Effect.gen(function* () {
  const blobs = yield* BlobStore
  const deletions = yield* DeletionRepository
  const functions = yield* FunctionsRuntime
  const remove = Effect.fnUntraced(function* (projectId: ProjectId, before: DateTime.Utc) {
    const now = yield* DateTime.now
    if (!(yield* deletions.markRemoved({ projectId, before, now }))) return
    const ids = yield* deletions.environments(projectId)
    yield* Effect.repeat(deletions.deletePlayers(ids, playersPerBatch), {
      until: (removed) => removed === 0
    })
    yield* Effect.forEach(ids, (id) => Effect.orDie(functions.purge(id)))
    yield* Effect.forEach(ids, (id) => Effect.orDie(blobs.removeAll(id)))
    yield* deletions.deleteProject(projectId, ids)
  })
  return Effect.gen(function* () {
    const before = yield* dueTime
    const due = yield* deletions.listDue(before)
    yield* Effect.forEach(due, (projectId) => remove(projectId, before), { discard: true })
  })
})

/** Deletes, restores and lists deleted projects, and removes the data of those that are due. */
export const makeDeletion = Effect.gen(function* () {
  const deletions = yield* DeletionRepository
  const sweep = yield* makeSweep
  yield* sweepHourly("Deleted projects", () => sweep)
  return {
    remove: yield* makeRemove,
    restore: yield* makeRestore,
    listDeleted: Effect.fn("Projects.listDeleted")(function* (developerId: DeveloperId) {
      const found = yield* deletions.listDeleted({ developerId, since: yield* dueTime })
      return found.map(({ deletedAt, ...project }): DeletedProject => ({
        ...project,
        deletedAt: DateTime.formatIso(deletedAt),
        restorableUntil: restorableUntil(deletedAt)
      }))
    })
  }
})
