/** Projects and keys as their members manage them. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentName, KeyKind } from "#rpc/auth"
import { DeveloperId, EnvironmentId, KeyId, ProjectId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { isOpen } from "./open.ts"
import { ProjectRow } from "./repository.ts"

const Time = Schema.DateTimeUtcFromDate

/** An active key with its project and environment. */
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

const ProjectName = Schema.Struct({ projectId: ProjectId, name: Schema.String })

const reads = (sql: SqlClient.SqlClient) => ({
  key: SqlSchema.findOne({
    Request: KeyId,
    Result: ListedKey,
    execute: (id) => sql`
      select e.project_id, e.name as environment, k.id, k.kind, k.prefix, k.plain, k.created_at,
        k.last_used_at
      from keys k join environments e on e.id = k.environment_id where k.id = ${id}`
  }),
  listByDeveloper: SqlSchema.findAll({
    Request: DeveloperId,
    Result: ProjectRow,
    execute: (developerId) => sql`
      select p.id, p.name, p.slug, p.created_at
      from projects p join project_members m on m.project_id = p.id
      where m.developer_id = ${developerId} and ${isOpen(sql)}
      order by p.id`
  }),
  find: SqlSchema.findOneOption({
    Request: ProjectId,
    Result: ProjectRow,
    execute: (id) => sql`
      select p.id, p.name, p.slug, p.created_at from projects p
      where p.id = ${id} and ${isOpen(sql)}`
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
  lockDeveloper: (id: DeveloperId) =>
    Effect.asVoid(orDieWithTimeout(sql`select id from developers where id = ${id} for update`)),
  lockProject: SqlSchema.findOneOption({
    Request: ProjectId,
    Result: ProjectRow,
    execute: (id) => sql`
      select p.id, p.name, p.slug, p.created_at from projects p
      where p.id = ${id} and ${isOpen(sql)} for update`
  }),
  lockEnvironment: (id: EnvironmentId) =>
    Effect.asVoid(orDieWithTimeout(sql`select id from environments where id = ${id} for update`))
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { countKeys, countProjects, environmentOfKey, find, key, keys, listByDeveloper } =
    reads(sql)
  const { lockDeveloper, lockEnvironment, lockProject } = locks(sql)
  const rename = SqlSchema.void({
    Request: ProjectName,
    execute: ({ name, projectId }) => sql`
      update projects set name = ${name} where id = ${projectId}`
  })
  return {
    listByDeveloper: (id: DeveloperId) => orDieWithTimeout(listByDeveloper(id)),
    find: (id: ProjectId) => orDieWithTimeout(find(id)),
    /** Lists the active keys of projects: publishable keys first, then oldest first. */
    keys: (ids: ReadonlyArray<ProjectId>) => orDieWithTimeout(keys(ids)),
    key: (id: KeyId) => orDieWithTimeout(key(id)),
    environmentOfKey: (request: Parameters<typeof environmentOfKey>[0]) =>
      orDieWithTimeout(environmentOfKey(request)),
    countProjects: (id: DeveloperId) =>
      Effect.map(orDieWithTimeout(countProjects(id)), ({ count }) => count),
    countKeys: (id: EnvironmentId) =>
      Effect.map(orDieWithTimeout(countKeys(id)), ({ count }) => count),
    /** The three locks hold a row until the transaction ends, so that changes under it serialize. */
    lockDeveloper,
    lockEnvironment,
    lockProject: (id: ProjectId) => orDieWithTimeout(lockProject(id)),
    rename: (request: typeof ProjectName.Type) => orDieWithTimeout(rename(request))
  }
})

/** Repository of `projects` and `keys` for their members. */
export class ManagementRepository extends Context.Service<ManagementRepository>()(
  "sql/projects/management/ManagementRepository",
  { make }
) {
  static readonly layer = Layer.effect(ManagementRepository, this.make)
}
