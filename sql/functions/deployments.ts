/** Versions of the code of Functions, which never change, and the secrets that they read. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentName } from "#rpc/auth"
import { FunctionsBinding } from "#rpc/functions/deployment"
import { functions } from "#rpc/functions/limits"
import { EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { SuspendedReason } from "./settings.ts"

const Time = Schema.DateTimeUtcFromDate
type Time = typeof Time.Type

/** Columns of a version, without the contents of its modules. */
const parts = {
  version: Schema.Int,
  createdAt: Time,
  activatedAt: Schema.NullOr(Time),
  message: Schema.NullOr(Schema.String),
  compatibilityDate: Schema.NullOr(Schema.String),
  mainModule: Schema.String,
  modules: Schema.Array(Schema.Struct({ name: Schema.String, sizeBytes: Schema.Int })),
  bindings: Schema.Array(FunctionsBinding),
  crons: Schema.Array(Schema.String),
  cors: Schema.Boolean,
  hooks: Schema.Array(Schema.String)
}

const Vars = Schema.Record(Schema.String, Schema.String)

const DeploymentRow = Schema.Struct({ ...parts, live: Schema.Boolean })
export type FunctionsDeploymentRow = typeof DeploymentRow.Type

/** A version with its modules, compressed. */
const BundleRow = Schema.Struct({ ...parts, vars: Vars, bundle: Schema.Uint8Array })
export type BundleRow = typeof BundleRow.Type

const NewRow = Schema.Struct({
  ...BundleRow.fields,
  environmentId: EnvironmentId,
  createdBy: Schema.String
})

/** The live version, with what decides whether it runs. */
const LiveRow = Schema.Struct({
  ...BundleRow.fields,
  enabled: Schema.Boolean,
  suspendedReason: Schema.NullOr(SuspendedReason),
  cpuMs: Schema.Int,
  subRequests: Schema.Int,
  name: EnvironmentName
})

const Ref = Schema.Struct({ environmentId: EnvironmentId, version: Schema.Int })

const Page = Schema.Struct({
  environmentId: EnvironmentId,
  before: Schema.Int,
  limit: Schema.Int
})

/** A database, a namespace of keys, or a store of files. */
const ResourceRow = Schema.Struct({
  name: Schema.String,
  type: Schema.Literals(["db", "kv", "files"])
})
export type ResourceRow = typeof ResourceRow.Type

const SecretRef = Schema.Struct({ environmentId: EnvironmentId, name: Schema.String })

const NewSecret = Schema.Struct({ ...SecretRef.fields, sealed: Schema.String, updatedAt: Time })

const NameRow = Schema.Struct({ name: Schema.String, updatedAt: Time })

const SealedRow = Schema.Struct({ name: Schema.String, sealed: Schema.String })

const reads = (sql: SqlClient.SqlClient) => {
  const columns = sql`
    d.version, d.created_at, d.activated_at, d.message, d.compatibility_date, d.main_module,
    d.modules, d.bindings, d.crons, d.cors, d.hooks`
  return {
    page: SqlSchema.findAll({
      Request: Page,
      Result: DeploymentRow,
      execute: ({ before, environmentId, limit }) => sql`
        select ${columns}, coalesce(f.live_version = d.version, false) as live
        from function_deployments d left join functions f on f.environment_id = d.environment_id
        where d.environment_id = ${environmentId} and d.version < ${before}
        order by d.version desc limit ${limit}`
    }),
    find: SqlSchema.findOneOption({
      Request: Ref,
      Result: DeploymentRow,
      execute: ({ environmentId, version }) => sql`
        select ${columns}, coalesce(f.live_version = d.version, false) as live
        from function_deployments d left join functions f on f.environment_id = d.environment_id
        where d.environment_id = ${environmentId} and d.version = ${version}`
    }),
    bundle: SqlSchema.findOneOption({
      Request: Ref,
      Result: BundleRow,
      execute: ({ environmentId, version }) => sql`
        select ${columns}, d.vars, d.bundle from function_deployments d
        where d.environment_id = ${environmentId} and d.version = ${version}`
    }),
    live: SqlSchema.findOneOption({
      Request: EnvironmentId,
      Result: LiveRow,
      execute: (environmentId) => sql`
        select ${columns}, d.vars, d.bundle, f.enabled, f.suspended_reason, f.cpu_ms,
          f.sub_requests, e.name
        from functions f
          join function_deployments d
            on d.environment_id = f.environment_id and d.version = f.live_version
          join environments e on e.id = f.environment_id
          join projects p on p.id = e.project_id
        where f.environment_id = ${environmentId}
          and p.deleted_at is null and p.removed_at is null`
    }),
    cors: SqlSchema.findOneOption({
      Request: EnvironmentId,
      Result: Schema.Struct({ cors: Schema.Boolean }),
      execute: (environmentId) => sql`
        select d.cors from functions f
          join function_deployments d
            on d.environment_id = f.environment_id and d.version = f.live_version
        where f.environment_id = ${environmentId}`
    })
  }
}

const changes = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.void({
    Request: NewRow,
    execute: ({ bindings, crons, hooks, modules, vars, ...row }) => sql`
      insert into function_deployments (environment_id, version, created_at, created_by,
        activated_at, message, compatibility_date, main_module, modules, bindings, vars, crons,
        cors, hooks, bundle)
      values (${row.environmentId}, ${row.version}, ${row.createdAt}, ${row.createdBy},
        ${row.activatedAt}, ${row.message}, ${row.compatibilityDate}, ${row.mainModule},
        ${JSON.stringify(modules)}::jsonb, ${JSON.stringify(bindings)}::jsonb,
        ${JSON.stringify(vars)}::jsonb, ${[...crons]}::text[], ${row.cors}, ${[...hooks]}::text[],
        ${row.bundle})`
  }),
  activate: SqlSchema.void({
    Request: Schema.Struct({ ...Ref.fields, now: Time }),
    execute: ({ environmentId, now, version }) => sql`
      update function_deployments set activated_at = ${now}
      where environment_id = ${environmentId} and version = ${version}`
  }),
  deleteOld: SqlSchema.void({
    Request: Schema.Struct({ environmentId: EnvironmentId, kept: Schema.Int }),
    execute: ({ environmentId, kept }) => sql`
      delete from function_deployments d
      where d.environment_id = ${environmentId} and d.version in (
        select version from function_deployments
        where environment_id = ${environmentId} order by version desc offset ${kept})
      and not exists (select from functions f
        where f.environment_id = d.environment_id and f.live_version = d.version)`
  })
})

/** Resources by their names. Their data outlives the versions that bind them. */
const resources = (sql: SqlClient.SqlClient) => {
  const bound = (environmentId: string) => sql`
    select jsonb_build_object('name', b->>'name', 'type', b->>'type') as resource
    from function_deployments d cross join lateral jsonb_array_elements(d.bindings) b
    where d.environment_id = ${environmentId} and b->>'type' in ('db', 'kv', 'files')`
  return {
    list: SqlSchema.findAll({
      Request: EnvironmentId,
      Result: ResourceRow,
      execute: (environmentId) => sql`
        select resource->>'name' as name, resource->>'type' as type
        from (
          ${bound(environmentId)}
          union
          select jsonb_array_elements(kept_resources) from functions
          where environment_id = ${environmentId}) known
        order by name, type`
    }),
    keep: SqlSchema.void({
      Request: EnvironmentId,
      execute: (environmentId) => sql`
        update functions f set kept_resources = (
          select coalesce(jsonb_agg(resource), '[]')
          from (
            select resource from (
              select jsonb_array_elements(f.kept_resources) as resource, 1 as place
              union all
              select resource, 2 from (${bound(environmentId)}) b) known
            group by resource order by min(place), resource
            limit ${functions.keptResourcesMax}) kept)
        where f.environment_id = ${environmentId}`
    })
  }
}

const secrets = (sql: SqlClient.SqlClient) => ({
  names: SqlSchema.findAll({
    Request: EnvironmentId,
    Result: NameRow,
    execute: (environmentId) => sql`
      select name, updated_at from function_secrets
      where environment_id = ${environmentId} order by name`
  }),
  sealed: SqlSchema.findAll({
    Request: EnvironmentId,
    Result: SealedRow,
    execute: (environmentId) => sql`
      select name, sealed from function_secrets where environment_id = ${environmentId}`
  }),
  put: SqlSchema.void({
    Request: NewSecret,
    execute: (row) => sql`
      insert into function_secrets ${sql.insert(row)}
      on conflict (environment_id, name)
      do update set sealed = excluded.sealed, updated_at = excluded.updated_at`
  }),
  remove: SqlSchema.findAll({
    Request: SecretRef,
    Result: Schema.Struct({ name: Schema.String }),
    execute: ({ environmentId, name }) => sql`
      delete from function_secrets
      where environment_id = ${environmentId} and name = ${name} returning name`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { bundle, cors, find, live, page } = reads(sql)
  const { activate, deleteOld, insert } = changes(sql)
  const { names, put, remove, sealed } = secrets(sql)
  const { keep, list } = resources(sql)
  return {
    /** Lists versions below one, newest first. */
    page: (request: typeof Page.Type) => orDieWithTimeout(page(request)),
    find: (ref: typeof Ref.Type) => orDieWithTimeout(find(ref)),
    /** A version with its modules. */
    bundle: (ref: typeof Ref.Type) => orDieWithTimeout(bundle(ref)),
    /** The live version of an environment whose project is not deleted. */
    live: (environmentId: EnvironmentId) => orDieWithTimeout(live(environmentId)),
    insert: (row: typeof NewRow.Type) => orDieWithTimeout(insert(row)),
    activate: (request: typeof Ref.Type & { readonly now: Time }) =>
      orDieWithTimeout(activate(request)),
    /** Returns whether the service answers pages of other origins for the live version. */
    hasCors: (environmentId: EnvironmentId) =>
      Effect.map(
        orDieWithTimeout(cors(environmentId)),
        Option.match({ onNone: () => true, onSome: (row) => row.cors })
      ),
    /** Lists the resources that a version binds, or bound before it was deleted. */
    resources: (environmentId: EnvironmentId) => orDieWithTimeout(list(environmentId)),
    /** Forgets the resources of deleted versions, whose data is gone. */
    forgetResources: (environmentId: EnvironmentId) =>
      Effect.asVoid(
        orDieWithTimeout(
          sql`update functions set kept_resources = '[]' where environment_id = ${environmentId}`
        )
      ),
    /** Deletes all versions but the newest and the live one. Lock the state first. */
    deleteOld: (environmentId: EnvironmentId, kept: number) =>
      Effect.andThen(
        orDieWithTimeout(keep(environmentId)),
        orDieWithTimeout(deleteOld({ environmentId, kept }))
      ),
    /** Deletes all versions. Lock the state first. */
    deleteAll: (environmentId: EnvironmentId) =>
      Effect.andThen(
        orDieWithTimeout(keep(environmentId)),
        Effect.asVoid(
          orDieWithTimeout(
            sql`delete from function_deployments where environment_id = ${environmentId}`
          )
        )
      ),
    /** The names of secrets, in order. */
    secretNames: (environmentId: EnvironmentId) => orDieWithTimeout(names(environmentId)),
    sealedSecrets: (environmentId: EnvironmentId) => orDieWithTimeout(sealed(environmentId)),
    putSecret: (row: typeof NewSecret.Type) => orDieWithTimeout(put(row)),
    /** Deletes a secret. Returns false if there is none of this name. */
    deleteSecret: (ref: typeof SecretRef.Type) =>
      Effect.map(orDieWithTimeout(remove(ref)), (rows) => rows.length === 1),
    deleteSecrets: (environmentId: EnvironmentId) =>
      Effect.asVoid(
        orDieWithTimeout(sql`delete from function_secrets where environment_id = ${environmentId}`)
      )
  }
})

/** Repository of `function_deployments` and `function_secrets`. */
export class FunctionsDeploymentRepository extends Context.Service<FunctionsDeploymentRepository>()(
  "sql/functions/deployments/FunctionsDeploymentRepository",
  { make }
) {
  static readonly layer = Layer.effect(FunctionsDeploymentRepository, this.make)
}
