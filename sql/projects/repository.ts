/** Projects, their two environments, API keys and members. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentName, KeyKind } from "#rpc/auth"
import { DeveloperId, EnvironmentId, KeyId, ProjectId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { isOpen } from "./open.ts"

export const ProjectRow = Schema.Struct({
  id: ProjectId,
  name: Schema.String,
  slug: Schema.String,
  createdAt: Schema.DateTimeUtcFromDate
})
export type ProjectRow = typeof ProjectRow.Type

export const EnvironmentRow = Schema.Struct({
  id: EnvironmentId,
  projectId: ProjectId,
  name: EnvironmentName,
  createdAt: Schema.DateTimeUtcFromDate
})
export type EnvironmentRow = typeof EnvironmentRow.Type

/** An API key. `plain` is null for a secret key, of which only the hash is stored. */
export const KeyRow = Schema.Struct({
  id: KeyId,
  environmentId: EnvironmentId,
  kind: KeyKind,
  hash: Schema.String,
  prefix: Schema.String,
  plain: Schema.NullOr(Schema.String),
  createdAt: Schema.DateTimeUtcFromDate
})
export type KeyRow = typeof KeyRow.Type

/** The key and the environment that it gives access to. */
const KeyCallerRow = Schema.Struct({
  environmentId: EnvironmentId,
  projectId: ProjectId,
  name: EnvironmentName,
  keyId: KeyId,
  keyKind: KeyKind,
  keyPrefix: Schema.String
})

/** A member of a project. */
const MemberRow = Schema.Struct({
  projectId: ProjectId,
  developerId: DeveloperId,
  createdAt: Schema.DateTimeUtcFromDate
})

const MemberEnvironment = Schema.Struct({
  environmentId: EnvironmentId,
  projectId: ProjectId,
  name: EnvironmentName
})

const RevokedKey = Schema.Struct({
  hash: Schema.String,
  revokedAt: Schema.DateTimeUtcFromDate
})

const statements = (sql: SqlClient.SqlClient) => ({
  bySlug: SqlSchema.findAll({
    Request: Schema.String,
    Result: Schema.Struct({ id: ProjectId }),
    execute: (slug) => sql`select id from projects where slug = ${slug}`
  }),
  insertProject: SqlSchema.findAll({
    Request: ProjectRow,
    Result: Schema.Struct({ id: ProjectId }),
    execute: (row) => sql`
      insert into projects ${sql.insert(row)} on conflict (slug) do nothing returning id`
  }),
  insertEnvironment: SqlSchema.void({
    Request: EnvironmentRow,
    execute: (row) => sql`insert into environments ${sql.insert(row)}`
  }),
  insertKey: SqlSchema.void({
    Request: KeyRow,
    execute: (row) => sql`insert into keys ${sql.insert(row)}`
  }),
  findKey: SqlSchema.findOneOption({
    Request: Schema.String,
    Result: KeyCallerRow,
    execute: (hash) => sql`
      select k.id as key_id, k.kind as key_kind, k.prefix as key_prefix, e.id as environment_id, e.project_id, e.name
      from keys k join environments e on e.id = k.environment_id
      where k.hash = ${hash} and k.revoked_at is null`
  }),
  liveKeys: SqlSchema.findAll({
    Request: Schema.Array(Schema.String),
    Result: Schema.Struct({ hash: Schema.String }),
    execute: (hashes) => sql`
      select hash from keys where hash = any(${[...hashes]}::text[]) and revoked_at is null`
  }),
  revokeKey: SqlSchema.findOneOption({
    Request: Schema.Struct({
      environmentId: EnvironmentId,
      keyId: KeyId,
      now: Schema.DateTimeUtcFromDate
    }),
    Result: RevokedKey,
    execute: ({ environmentId, keyId, now }) => sql`
      update keys set revoked_at = coalesce(revoked_at, ${now})
      where environment_id = ${environmentId} and id = ${keyId}
      returning hash, revoked_at`
  }),
  any: SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ id: ProjectId }),
    execute: () => sql`select id from projects limit 1`
  })
})

/** Repository of `projects`, `environments` and `keys`. */
export class ProjectRepository extends Context.Service<ProjectRepository>()(
  "sql/projects/repository/ProjectRepository",
  {
    make: Effect.gen(function* () {
      const { any, bySlug, insertEnvironment, insertKey, ...rest } = statements(
        yield* SqlClient.SqlClient
      )
      const { insertProject, findKey, liveKeys, revokeKey } = rest
      return {
        /** Whether a project has this slug, also a deleted one. */
        hasSlug: (slug: string) =>
          Effect.map(orDieWithTimeout(bySlug(slug)), (rows) => rows.length > 0),
        /** Inserts a project; returns false when its slug is taken. */
        insertProject: (row: ProjectRow) =>
          Effect.map(orDieWithTimeout(insertProject(row)), (rows) => rows.length === 1),
        insertEnvironment: (row: EnvironmentRow) => orDieWithTimeout(insertEnvironment(row)),
        insertKey: (row: KeyRow) => orDieWithTimeout(insertKey(row)),
        /** Finds an active key by its hash. */
        findKey: (hash: string) => orDieWithTimeout(findKey(hash)),
        /** Returns those of these hashes that belong to active keys. */
        liveKeys: (hashes: ReadonlyArray<string>) =>
          Effect.map(
            orDieWithTimeout(liveKeys(hashes)),
            (rows): ReadonlySet<string> => new Set(rows.map(({ hash }) => hash))
          ),
        /** Revokes a key; a repeated call keeps the first time. None for an unknown key. */
        revokeKey: (request: Parameters<typeof revokeKey>[0]) =>
          orDieWithTimeout(revokeKey(request)),
        /** Whether there is no project. */
        isEmpty: Effect.map(orDieWithTimeout(any(undefined)), (rows) => rows.length === 0)
      }
    })
  }
) {
  static readonly layer = Layer.effect(ProjectRepository, this.make)
}

const memberships = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.void({
    Request: MemberRow,
    execute: (row) => sql`insert into project_members ${sql.insert(row)}`
  }),
  project: SqlSchema.findOneOption({
    Request: Schema.Struct({
      developerId: DeveloperId,
      projectId: ProjectId,
      evenDeleted: Schema.Boolean
    }),
    Result: Schema.Struct({ projectId: ProjectId }),
    execute: ({ developerId, evenDeleted, projectId }) => sql`
      select m.project_id from project_members m join projects p on p.id = m.project_id
      where m.developer_id = ${developerId} and m.project_id = ${projectId}
        and (${isOpen(sql)} or (${evenDeleted} and p.removed_at is null))`
  }),
  environment: SqlSchema.findOneOption({
    Request: Schema.Struct({
      developerId: DeveloperId,
      projectId: ProjectId,
      env: EnvironmentName
    }),
    Result: MemberEnvironment,
    execute: ({ developerId, env, projectId }) => sql`
      select e.id as environment_id, e.project_id, e.name
      from environments e join project_members m on m.project_id = e.project_id
        join projects p on p.id = e.project_id and ${isOpen(sql)}
      where m.developer_id = ${developerId} and e.project_id = ${projectId} and e.name = ${env}`
  })
})

/** Repository of `project_members`. */
export class MemberRepository extends Context.Service<MemberRepository>()(
  "sql/projects/repository/MemberRepository",
  {
    make: Effect.gen(function* () {
      const { environment, insert, project } = memberships(yield* SqlClient.SqlClient)
      return {
        insert: (row: typeof MemberRow.Type) => orDieWithTimeout(insert(row)),
        /** Finds a project that the developer is a member of; if wanted, a deleted one, too. */
        project: (request: Parameters<typeof project>[0]) => orDieWithTimeout(project(request)),
        /** Finds an environment of a project that the developer is a member of. */
        environment: (request: Parameters<typeof environment>[0]) =>
          orDieWithTimeout(environment(request))
      }
    })
  }
) {
  static readonly layer = Layer.effect(MemberRepository, this.make)
}
