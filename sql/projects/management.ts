/** Projects as their members see and change them, and how they are removed (spec section 4.9). */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentName, KeyKind } from "#rpc/auth"
import { DeveloperId, EnvironmentId, KeyId, ProjectId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { ProjectRow } from "./repository.ts"

const Time = Schema.DateTimeUtcFromDate

/** A key that is not revoked, and where it belongs. */
const ListedKey = Schema.Struct({
  projectId: ProjectId,
  environment: EnvironmentName,
  id: KeyId,
  kind: KeyKind,
  prefix: Schema.String,
  plain: Schema.NullOr(Schema.String),
  createdAt: Time,
  lastUsedAt: Schema.NullOr(Time)
})
export type ListedKey = typeof ListedKey.Type

const Count = Schema.Struct({ count: Schema.Int })

const Named = Schema.Struct({ projectId: ProjectId, name: Schema.String })

const reads = (sql: SqlClient.SqlClient) => ({
  key: SqlSchema.findOne({
    Request: KeyId,
    Result: ListedKey,
    execute: (id) => sql`
      select e.project_id, e.name as environment, k.id, k.kind, k.prefix, k.plain, k.created_at,
        k.last_used_at
      from keys k join environments e on e.id = k.environment_id where k.id = ${id}`
  }),
  ofDeveloper: SqlSchema.findAll({
    Request: DeveloperId,
    Result: ProjectRow,
    execute: (developerId) => sql`
      select p.id, p.name, p.slug, p.created_at
      from projects p join project_members m on m.project_id = p.id
      where m.developer_id = ${developerId} order by p.id`
  }),
  find: SqlSchema.findOneOption({
    Request: ProjectId,
    Result: ProjectRow,
    execute: (id) => sql`
      select id, name, slug, created_at from projects where id = ${id} and removed_at is null`
  }),
  keys: SqlSchema.findAll({
    Request: Schema.Array(ProjectId),
    Result: ListedKey,
    execute: (ids) => sql`
      select e.project_id, e.name as environment, k.id, k.kind, k.prefix, k.plain, k.created_at,
        k.last_used_at
      from keys k join environments e on e.id = k.environment_id
      where e.project_id = any(${[...ids]}::text[]) and k.revoked_at is null
      order by k.kind, k.id`
  }),
  environmentOfKey: SqlSchema.findOneOption({
    Request: Schema.Struct({ projectId: ProjectId, keyId: KeyId }),
    Result: Schema.Struct({ environmentId: EnvironmentId, keyId: KeyId }),
    execute: ({ keyId, projectId }) => sql`
      select k.environment_id, k.id as key_id
      from keys k join environments e on e.id = k.environment_id
      where e.project_id = ${projectId} and k.id = ${keyId}`
  }),
  countProjects: SqlSchema.findOne({
    Request: DeveloperId,
    Result: Count,
    execute: (developerId) => sql`
      select count(*)::int as count from project_members where developer_id = ${developerId}`
  }),
  countKeys: SqlSchema.findOne({
    Request: EnvironmentId,
    Result: Count,
    execute: (environmentId) => sql`
      select count(*)::int as count from keys
      where environment_id = ${environmentId} and revoked_at is null`
  })
})

const locks = (sql: SqlClient.SqlClient) => ({
  holdDeveloper: (id: DeveloperId) =>
    Effect.asVoid(orDieWithTimeout(sql`select id from developers where id = ${id} for update`)),
  holdProject: SqlSchema.findOneOption({
    Request: ProjectId,
    Result: ProjectRow,
    execute: (id) => sql`
      select id, name, slug, created_at from projects
      where id = ${id} and removed_at is null for update`
  }),
  holdEnvironment: (id: EnvironmentId) =>
    Effect.asVoid(orDieWithTimeout(sql`select id from environments where id = ${id} for update`))
})

const removals = (sql: SqlClient.SqlClient) => ({
  environments: SqlSchema.findAll({
    Request: ProjectId,
    Result: Schema.Struct({ id: EnvironmentId }),
    execute: (projectId) => sql`select id from environments where project_id = ${projectId}`
  }),
  dropKeys: SqlSchema.findAll({
    Request: Schema.Array(EnvironmentId),
    Result: Schema.Struct({ hash: Schema.String }),
    execute: (ids) => sql`
      delete from keys where environment_id = any(${[...ids]}::text[]) returning hash`
  }),
  dropPlayers: SqlSchema.findAll({
    Request: Schema.Struct({ ids: Schema.Array(EnvironmentId), limit: Schema.Int }),
    Result: Schema.Struct({ id: Schema.String }),
    execute: ({ ids, limit }) => sql`
      delete from players where id in (
        select id from players where environment_id = any(${[...ids]}::text[])
        order by environment_id, id limit ${limit} for update)
      returning id`
  }),
  removed: SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ id: ProjectId }),
    execute: () => sql`select id from projects where removed_at is not null`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { countKeys, countProjects, environmentOfKey, find, key, keys, ofDeveloper } = reads(sql)
  const { holdDeveloper, holdEnvironment, holdProject } = locks(sql)
  const { dropKeys, dropPlayers, environments, removed } = removals(sql)
  const rename = SqlSchema.void({
    Request: Named,
    execute: ({ name, projectId }) => sql`
      update projects set name = ${name} where id = ${projectId}`
  })
  return {
    ofDeveloper: (id: DeveloperId) => orDieWithTimeout(ofDeveloper(id)),
    find: (id: ProjectId) => orDieWithTimeout(find(id)),
    /** The keys of projects that are not revoked: publishable ones first, then by age. */
    keys: (ids: ReadonlyArray<ProjectId>) => orDieWithTimeout(keys(ids)),
    key: (id: KeyId) => orDieWithTimeout(key(id)),
    environmentOfKey: (request: Parameters<typeof environmentOfKey>[0]) =>
      orDieWithTimeout(environmentOfKey(request)),
    countProjects: (id: DeveloperId) =>
      Effect.map(orDieWithTimeout(countProjects(id)), ({ count }) => count),
    countKeys: (id: EnvironmentId) =>
      Effect.map(orDieWithTimeout(countKeys(id)), ({ count }) => count),
    /** Within a transaction: of those who hold the same, one comes after the other. */
    holdDeveloper,
    holdEnvironment,
    holdProject: (id: ProjectId) => orDieWithTimeout(holdProject(id)),
    rename: (request: typeof Named.Type) => orDieWithTimeout(rename(request)),
    environments: (id: ProjectId) =>
      Effect.map(orDieWithTimeout(environments(id)), (rows) => rows.map((row) => row.id)),
    /** Within a transaction: nobody sees or opens the project any more. Answers its keys' hashes. */
    hide: Effect.fnUntraced(function* (
      id: ProjectId,
      ids: ReadonlyArray<EnvironmentId>,
      now: typeof Time.Type
    ) {
      const at = yield* Effect.orDie(Schema.encodeEffect(Time)(now))
      yield* orDieWithTimeout(sql`update projects set removed_at = ${at} where id = ${id}`)
      yield* orDieWithTimeout(sql`delete from project_members where project_id = ${id}`)
      yield* orDieWithTimeout(
        sql`delete from configs where environment_id = any(${[...ids]}::text[])`
      )
      const dropped = yield* orDieWithTimeout(dropKeys(ids))
      return dropped.map(({ hash }) => hash)
    }),
    /** Removes some of the players with what is theirs; answers how many. */
    dropPlayers: (ids: ReadonlyArray<EnvironmentId>, limit: number) =>
      Effect.map(orDieWithTimeout(dropPlayers({ ids, limit })), (rows) => rows.length),
    /** Removes what is left, once there are no players. */
    drop: Effect.fnUntraced(function* (id: ProjectId, ids: ReadonlyArray<EnvironmentId>) {
      yield* orDieWithTimeout(
        sql`delete from rooms where environment_id = any(${[...ids]}::text[])`
      )
      yield* orDieWithTimeout(sql`delete from projects where id = ${id}`)
    }),
    /** Projects whose removal has begun. */
    removed: Effect.map(orDieWithTimeout(removed(undefined)), (rows) => rows.map((row) => row.id))
  }
})

/** Rows in and out of `projects`, for their members. */
export class ManagementRepository extends Context.Service<ManagementRepository>()(
  "sql/projects/management/ManagementRepository",
  { make }
) {
  static readonly layer = Layer.effect(ManagementRepository, this.make)
}
