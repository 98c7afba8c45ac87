/** Custom domains of apps. At most one environment has verified a domain. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentName } from "#rpc/auth"
import { EnvironmentId, ProjectId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { isOpen } from "../projects/open.ts"

const Time = Schema.DateTimeUtcFromDate

const DomainRow = Schema.Struct({
  environmentId: EnvironmentId,
  domain: Schema.String,
  token: Schema.String,
  createdAt: Time,
  verifiedAt: Schema.NullOr(Time)
})
export type DomainRow = typeof DomainRow.Type

const Key = Schema.Struct({ environmentId: EnvironmentId, domain: Schema.String })
type Key = typeof Key.Type

/** The environment that a verified domain leads to. */
const ServedDomain = Schema.Struct({
  domain: Schema.String,
  name: EnvironmentName,
  slug: Schema.String
})

const LostDomain = Schema.Struct({
  environmentId: EnvironmentId,
  projectId: ProjectId,
  name: EnvironmentName
})

const statements = (sql: SqlClient.SqlClient) => ({
  lock: SqlSchema.void({
    Request: EnvironmentId,
    execute: (id) => sql`select 1 from environments where id = ${id} for update`
  }),
  insert: SqlSchema.void({
    Request: DomainRow,
    execute: (row) => sql`insert into hosted_domains ${sql.insert(row)}`
  }),
  list: SqlSchema.findAll({
    Request: EnvironmentId,
    Result: DomainRow,
    execute: (id) => sql`
      select * from hosted_domains where environment_id = ${id} order by created_at, domain`
  }),
  find: SqlSchema.findOneOption({
    Request: Key,
    Result: DomainRow,
    execute: ({ domain, environmentId }) => sql`
      select * from hosted_domains where environment_id = ${environmentId} and domain = ${domain}`
  }),
  lockName: SqlSchema.void({
    Request: Schema.String,
    execute: (domain) => sql`
      select 1 from hosted_domains where domain = ${domain} order by environment_id for update`
  }),
  release: SqlSchema.findAll({
    Request: Key,
    Result: LostDomain,
    execute: ({ domain, environmentId }) => sql`
      update hosted_domains d set verified_at = null from environments e
      where d.domain = ${domain} and d.verified_at is not null
        and d.environment_id <> ${environmentId} and e.id = d.environment_id
      returning d.environment_id, e.project_id, e.name`
  }),
  verify: SqlSchema.void({
    Request: Schema.Struct({ ...Key.fields, now: Time }),
    execute: ({ domain, environmentId, now }) => sql`
      update hosted_domains set verified_at = ${now}
      where environment_id = ${environmentId} and domain = ${domain}`
  }),
  delete: SqlSchema.findAll({
    Request: Key,
    Result: Schema.Struct({ domain: Schema.String }),
    execute: ({ domain, environmentId }) => sql`
      delete from hosted_domains
      where environment_id = ${environmentId} and domain = ${domain} returning domain`
  }),
  served: SqlSchema.findAll({
    Request: Schema.Void,
    Result: ServedDomain,
    execute: () => sql`
      select d.domain, e.name, p.slug from hosted_domains d
      join environments e on e.id = d.environment_id join projects p on p.id = e.project_id
      where d.verified_at is not null and ${isOpen(sql)}`
  })
})

/** Repository of `hosted_domains`. */
export class DomainRepository extends Context.Service<DomainRepository>()(
  "sql/hosting/domains/DomainRepository",
  {
    make: Effect.gen(function* () {
      const all = statements(yield* SqlClient.SqlClient)
      return {
        /** Locks the environment's domains until the transaction ends. */
        lock: (id: EnvironmentId) => orDieWithTimeout(all.lock(id)),
        insert: (row: DomainRow) => orDieWithTimeout(all.insert(row)),
        /** The domains of an environment, oldest first. */
        list: (id: EnvironmentId) => orDieWithTimeout(all.list(id)),
        find: (key: Key) => orDieWithTimeout(all.find(key)),
        /** Locks all claims to a domain until the transaction ends. */
        lockName: (domain: string) => orDieWithTimeout(all.lockName(domain)),
        /**
         * Revokes the verification of a domain by another environment, and returns that one.
         */
        release: (key: Key) => orDieWithTimeout(all.release(key)),
        verify: (request: Parameters<typeof all.verify>[0]) =>
          orDieWithTimeout(all.verify(request)),
        /** Returns the domain if the environment had it. */
        delete: (key: Key) => orDieWithTimeout(all.delete(key)),
        /** Lists all verified domains of open projects. */
        served: orDieWithTimeout(all.served())
      }
    })
  }
) {
  static readonly layer = Layer.effect(DomainRepository, this.make)
}
