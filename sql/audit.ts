/** Audit log: one append-only row per change, with actor, time, address and target. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentName } from "#rpc/auth"
import { ActorKind } from "#rpc/audit"
import { ProjectId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate

/** Project id in entries of the whole deployment. */
export const wholeDeployment = "deployment"

const Row = Schema.Struct({
  id: Schema.String,
  at: Time,
  projectId: Schema.Union([ProjectId, Schema.Literal(wholeDeployment)]),
  /** Environment of the change; null for a change of the whole project. */
  env: Schema.NullOr(EnvironmentName),
  actorKind: ActorKind,
  actorId: Schema.String,
  actorName: Schema.String,
  address: Schema.NullOr(Schema.String),
  action: Schema.String,
  targetKind: Schema.String,
  targetId: Schema.String,
  details: Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json))
})
export type AuditRow = typeof Row.Type

/** A page of entries with ids below `before`; a null filter matches all entries. */
const Page = Schema.Struct({
  projectId: ProjectId,
  before: Schema.NullOr(Schema.String),
  env: Schema.NullOr(EnvironmentName),
  action: Schema.NullOr(Schema.String),
  actor: Schema.NullOr(Schema.String),
  target: Schema.NullOr(Schema.String),
  limit: Schema.Int
})
export type AuditPage = typeof Page.Type

const statements = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.void({
    Request: Row,
    execute: (row) => sql`insert into audit ${sql.insert(row)}`
  }),
  page: SqlSchema.findAll({
    Request: Page,
    Result: Row,
    execute: ({ action, actor, before, env, limit, projectId, target }) => sql`
      select * from audit
      where project_id = ${projectId}
        and (${before}::text is null or id < ${before})
        and (${env}::text is null or env = ${env})
        and (${action}::text is null or action = ${action})
        and (${actor}::text is null or actor_id = ${actor})
        and (${target}::text is null or target_id = ${target})
      order by id desc limit ${limit}`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`select sweep_audit(${before})`
  })
})

/** Repository of `audit`. A database trigger rejects updates and early deletes. */
export class AuditRepository extends Context.Service<AuditRepository>()(
  "sql/audit/AuditRepository",
  {
    make: Effect.gen(function* () {
      const { insert, page, sweep } = statements(yield* SqlClient.SqlClient)
      return {
        /** Inserts an entry; within a transaction, it commits or rolls back with it. */
        insert: (row: AuditRow) => orDieWithTimeout(insert(row)),
        /** Returns a page of entries, newest first. */
        page: (request: AuditPage) => orDieWithTimeout(page(request)),
        /** Deletes the entries from before a time. */
        sweep: (before: typeof Time.Type) => Effect.orDie(sweep(before))
      }
    })
  }
) {
  static readonly layer = Layer.effect(AuditRepository, this.make)
}
