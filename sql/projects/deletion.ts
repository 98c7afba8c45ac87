/**
 * Deletion of projects in two steps. A deletion closes the project: it revokes the keys, and hides
 * its members and configs. A restoration undoes that. Later the service removes the data in
 * batches.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { DeveloperId, EnvironmentId, ProjectId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate
type Time = typeof Time.Type

const KeyHash = Schema.Struct({ hash: Schema.String })

/** A deleted project that can still be restored. */
const DeletedProjectRow = Schema.Struct({
  id: ProjectId,
  name: Schema.String,
  slug: Schema.String,
  deletedAt: Time
})

/** `since`: projects that were deleted earlier can no longer be restored. */
const Restorable = Schema.Struct({ developerId: DeveloperId, since: Time })

const closing = (sql: SqlClient.SqlClient) => ({
  environments: SqlSchema.findAll({
    Request: ProjectId,
    Result: Schema.Struct({ id: EnvironmentId }),
    execute: (projectId) => sql`select id from environments where project_id = ${projectId}`
  }),
  markDeleted: SqlSchema.void({
    Request: Schema.Struct({ projectId: ProjectId, now: Time }),
    execute: ({ now, projectId }) => sql`
      update projects set deleted_at = ${now} where id = ${projectId}`
  }),
  // The time of the deletion marks the keys that a restoration brings back.
  revokeKeys: SqlSchema.findAll({
    Request: Schema.Struct({ ids: Schema.Array(EnvironmentId), now: Time }),
    Result: KeyHash,
    execute: ({ ids, now }) => sql`
      update keys set revoked_at = ${now}
      where environment_id = any(${[...ids]}::text[]) and revoked_at is null
      returning hash`
  }),
  deleteMails: SqlSchema.void({
    Request: Schema.Array(EnvironmentId),
    execute: (ids) => sql`delete from mails where environment_id = any(${[...ids]}::text[])`
  })
})

const restoring = (sql: SqlClient.SqlClient) => ({
  listDeleted: SqlSchema.findAll({
    Request: Restorable,
    Result: DeletedProjectRow,
    execute: ({ developerId, since }) => sql`
      select p.id, p.name, p.slug, p.deleted_at
      from projects p join project_members m on m.project_id = p.id
      where m.developer_id = ${developerId} and p.deleted_at > ${since} and p.removed_at is null
      order by p.deleted_at desc, p.id`
  }),
  lockDeleted: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Restorable.fields, projectId: ProjectId }),
    Result: DeletedProjectRow,
    execute: ({ developerId, projectId, since }) => sql`
      select p.id, p.name, p.slug, p.deleted_at
      from projects p join project_members m on m.project_id = p.id
      where p.id = ${projectId} and m.developer_id = ${developerId}
        and p.deleted_at > ${since} and p.removed_at is null
      for update of p`
  }),
  restoreKeys: SqlSchema.findAll({
    Request: Schema.Struct({ ids: Schema.Array(EnvironmentId), deletedAt: Time }),
    Result: KeyHash,
    execute: ({ deletedAt, ids }) => sql`
      update keys set revoked_at = null
      where environment_id = any(${[...ids]}::text[]) and revoked_at = ${deletedAt}
      returning hash`
  })
})

const removals = (sql: SqlClient.SqlClient) => ({
  listDue: SqlSchema.findAll({
    Request: Time,
    Result: Schema.Struct({ id: ProjectId }),
    execute: (before) => sql`
      select id from projects where removed_at is not null or deleted_at <= ${before}`
  }),
  markRemoved: SqlSchema.findAll({
    Request: Schema.Struct({ projectId: ProjectId, before: Time, now: Time }),
    Result: Schema.Struct({ id: ProjectId }),
    execute: ({ before, now, projectId }) => sql`
      update projects set removed_at = coalesce(removed_at, ${now})
      where id = ${projectId} and (removed_at is not null or deleted_at <= ${before})
      returning id`
  }),
  deletePlayers: SqlSchema.findAll({
    Request: Schema.Struct({ ids: Schema.Array(EnvironmentId), limit: Schema.Int }),
    Result: Schema.Struct({ id: Schema.String }),
    execute: ({ ids, limit }) => sql`
      delete from players where id in (
        select id from players where environment_id = any(${[...ids]}::text[])
        order by environment_id, id limit ${limit} for update)
      returning id`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { deleteMails, environments, markDeleted, revokeKeys } = closing(sql)
  const { listDeleted, lockDeleted, restoreKeys } = restoring(sql)
  const { deletePlayers, listDue, markRemoved } = removals(sql)
  const hashesOf = (rows: ReadonlyArray<typeof KeyHash.Type>) => rows.map(({ hash }) => hash)
  return {
    environments: (id: ProjectId) =>
      Effect.map(orDieWithTimeout(environments(id)), (rows) => rows.map((row) => row.id)),
    /** Closes a project and returns the hashes of its keys. Run it in a transaction. */
    close: Effect.fnUntraced(function* (
      projectId: ProjectId,
      ids: ReadonlyArray<EnvironmentId>,
      now: Time
    ) {
      yield* orDieWithTimeout(markDeleted({ projectId, now }))
      yield* orDieWithTimeout(deleteMails(ids))
      return hashesOf(yield* orDieWithTimeout(revokeKeys({ ids, now })))
    }),
    listDeleted: (request: typeof Restorable.Type) => orDieWithTimeout(listDeleted(request)),
    /** Locks a deleted project of a member until the transaction ends. */
    lockDeleted: (request: Parameters<typeof lockDeleted>[0]) =>
      orDieWithTimeout(lockDeleted(request)),
    /** Opens a project again and returns the hashes of its keys. Run it in a transaction. */
    reopen: Effect.fnUntraced(function* (
      projectId: ProjectId,
      ids: ReadonlyArray<EnvironmentId>,
      deletedAt: Time
    ) {
      yield* orDieWithTimeout(sql`update projects set deleted_at = null where id = ${projectId}`)
      return hashesOf(yield* orDieWithTimeout(restoreKeys({ ids, deletedAt })))
    }),
    /** Lists projects that were deleted before a time, and those whose removal was interrupted. */
    listDue: (before: Time) =>
      Effect.map(orDieWithTimeout(listDue(before)), (rows) => rows.map((row) => row.id)),
    /** Marks a due project as removed. Returns false if it has been restored. */
    markRemoved: (request: Parameters<typeof markRemoved>[0]) =>
      Effect.map(orDieWithTimeout(markRemoved(request)), (rows) => rows.length === 1),
    /** Deletes up to `limit` players with all their rows; returns their number. */
    deletePlayers: (ids: ReadonlyArray<EnvironmentId>, limit: number) =>
      Effect.map(orDieWithTimeout(deletePlayers({ ids, limit })), (rows) => rows.length),
    /** Deletes the remaining rows of a project without players. */
    deleteProject: Effect.fnUntraced(function* (id: ProjectId, ids: ReadonlyArray<EnvironmentId>) {
      yield* orDieWithTimeout(
        sql`delete from rooms where environment_id = any(${[...ids]}::text[])`
      )
      yield* orDieWithTimeout(sql`delete from projects where id = ${id}`)
    })
  }
})

/** Repository of the deletion of `projects`. */
export class DeletionRepository extends Context.Service<DeletionRepository>()(
  "sql/projects/deletion/DeletionRepository",
  { make }
) {
  static readonly layer = Layer.effect(DeletionRepository, this.make)
}
