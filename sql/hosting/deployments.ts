/**
 * Deployments of an app: versions of a list of files, of which one is live. The row of `hosted_apps` is
 * locked by each change, so versions are issued once and activations serialize.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { DeploymentId, EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate
type Time = typeof Time.Type

const Status = Schema.Literals(["uploading", "ready"])

/** Deployment of an app, and whether it is live. */
const DeploymentRow = Schema.Struct({
  id: DeploymentId,
  version: Schema.Int,
  status: Status,
  live: Schema.Boolean,
  message: Schema.NullOr(Schema.String),
  fileCount: Schema.Int,
  totalBytes: Schema.Finite,
  createdAt: Time,
  finalizedAt: Schema.NullOr(Time),
  activatedAt: Schema.NullOr(Time)
})
export type DeploymentRow = typeof DeploymentRow.Type

/** A file of a deployment. */
export interface FileRow {
  readonly path: string
  readonly sha256: string
  readonly size: number
}

/** File of a version that is not live any more, with the sizes of its compressed forms. */
const StaleFileRow = Schema.Struct({
  path: Schema.String,
  sha256: Schema.String,
  size: Schema.Int,
  brotliBytes: Schema.NullOr(Schema.Int),
  gzipBytes: Schema.NullOr(Schema.Int)
})
export type StaleFileRow = typeof StaleFileRow.Type

const NewRow = Schema.Struct({
  id: DeploymentId,
  environmentId: EnvironmentId,
  version: Schema.Int,
  status: Status,
  message: Schema.NullOr(Schema.String),
  fileCount: Schema.Int,
  totalBytes: Schema.Int,
  createdBy: Schema.String,
  createdAt: Time
})

const Environment = Schema.Struct({ environmentId: EnvironmentId })

/** A deployment by id, or by version. */
const Ref = Schema.Struct({
  ...Environment.fields,
  id: Schema.NullOr(DeploymentId),
  version: Schema.NullOr(Schema.Int)
})

const Page = Schema.Struct({ ...Environment.fields, before: Schema.Int, limit: Schema.Int })

const StaleFiles = Schema.Struct({
  environmentId: Schema.String,
  paths: Schema.Array(Schema.String),
  since: Time
})

const Target = Schema.Struct({ ...Environment.fields, id: DeploymentId })

const At = Schema.Struct({ ...Target.fields, now: Time })

const AppRow = Schema.Struct({ lastVersion: Schema.Int, liveId: Schema.NullOr(DeploymentId) })

const MissingRow = Schema.Struct({ sha256: Schema.String, size: Schema.Int })

const ManifestRow = Schema.Struct({ manifest: Schema.NullOr(Schema.String) })

const Expiry = Schema.Struct({ ...Environment.fields, before: Time })

const Retention = Schema.Struct({ ...Environment.fields, since: Time, kept: Schema.Int })

/** Parses the text of a manifest. Paths have no control characters, so one text holds all files. */
const parseManifest = (text: string): ReadonlyArray<FileRow> =>
  text.split("\n").map((line) => {
    const [sha256 = "", size = ""] = line.split(" ", 2)
    return { sha256, size: Number(size), path: line.slice(sha256.length + size.length + 2) }
  })

const reads = (sql: SqlClient.SqlClient) => {
  const columns = sql`
    d.id, d.version, d.status, d.message, d.file_count, d.total_bytes::float8 as total_bytes,
    d.created_at, d.finalized_at, d.activated_at, coalesce(a.live_id = d.id, false) as live`
  return {
    find: SqlSchema.findOneOption({
      Request: Ref,
      Result: DeploymentRow,
      execute: ({ environmentId, id, version }) => sql`
        select ${columns} from deployments d
          left join hosted_apps a on a.environment_id = d.environment_id
        where d.environment_id = ${environmentId} and (d.id = ${id} or d.version = ${version})`
    }),
    page: SqlSchema.findAll({
      Request: Page,
      Result: DeploymentRow,
      execute: ({ before, environmentId, limit }) => sql`
        select ${columns} from deployments d
          left join hosted_apps a on a.environment_id = d.environment_id
        where d.environment_id = ${environmentId} and d.version < ${before}
        order by d.version desc limit ${limit}`
    }),
    live: SqlSchema.findOneOption({
      Request: EnvironmentId,
      Result: DeploymentRow,
      execute: (environmentId) => sql`
        select ${columns} from hosted_apps a join deployments d on d.id = a.live_id
        where a.environment_id = ${environmentId}`
    }),
    staleFiles: SqlSchema.findAll({
      Request: StaleFiles,
      Result: StaleFileRow,
      execute: ({ environmentId, paths, since }) => sql`
        select distinct on (f.path) f.path, f.sha256, f.size, b.brotli_bytes, b.gzip_bytes
        from deployments d
          join deployment_files f on f.deployment_id = d.id and f.path = any(${paths}::text[])
          join blobs b on b.environment_id = f.environment_id and b.sha256 = f.sha256
            and b.stored_at is not null
          left join hosted_apps a on a.environment_id = d.environment_id
        where d.environment_id = ${environmentId} and d.status = 'ready'
          and d.deactivated_at >= ${since} and d.id is distinct from a.live_id
        order by f.path, d.deactivated_at desc`
    }),
    missing: SqlSchema.findAll({
      Request: Target,
      Result: MissingRow,
      execute: ({ environmentId, id }) => sql`
        select distinct f.sha256, f.size from deployment_files f
          left join blobs b on b.environment_id = f.environment_id and b.sha256 = f.sha256
            and b.size = f.size and b.stored_at is not null
        where f.environment_id = ${environmentId} and f.deployment_id = ${id} and b.sha256 is null
        order by f.sha256`
    }),
    manifest: SqlSchema.findOne({
      Request: Target,
      Result: ManifestRow,
      execute: ({ environmentId, id }) => sql`
        select string_agg(sha256 || ' ' || size || ' ' || path, E'\n' order by path) as manifest
        from deployment_files
        where environment_id = ${environmentId} and deployment_id = ${id}`
    })
  }
}

const changes = (sql: SqlClient.SqlClient) => ({
  lockApp: SqlSchema.findOne({
    Request: EnvironmentId,
    Result: AppRow,
    execute: (environmentId) => sql`
      insert into hosted_apps as a (environment_id) values (${environmentId})
      on conflict (environment_id) do update set last_version = a.last_version
      returning last_version, live_id`
  }),
  insert: SqlSchema.void({
    Request: NewRow,
    execute: (row) => sql`
      with version as (
        update hosted_apps set last_version = ${row.version}
        where environment_id = ${row.environmentId})
      insert into deployments ${sql.insert(row)}`
  }),
  markReady: SqlSchema.void({
    Request: At,
    execute: ({ environmentId, id, now }) => sql`
      update deployments set status = 'ready', finalized_at = ${now}
      where environment_id = ${environmentId} and id = ${id}`
  }),
  activate: SqlSchema.void({
    Request: At,
    execute: ({ environmentId, id, now }) => sql`
      with before as (
        update deployments d set deactivated_at = ${now} from hosted_apps a
        where a.environment_id = ${environmentId} and d.id = a.live_id and d.id <> ${id}),
      live as (
        update hosted_apps set live_id = ${id} where environment_id = ${environmentId})
      update deployments set activated_at = ${now}
      where environment_id = ${environmentId} and id = ${id}`
  })
})

const removals = (sql: SqlClient.SqlClient) => ({
  environments: SqlSchema.findAll({
    Request: Schema.Void,
    Result: Environment,
    execute: () => sql`select environment_id from hosted_apps order by environment_id`
  }),
  trimUnfinished: SqlSchema.void({
    Request: Schema.Struct({ ...Environment.fields, kept: Schema.Int }),
    execute: ({ environmentId, kept }) => sql`
      delete from deployments where id in (
        select id from deployments
        where environment_id = ${environmentId} and status = 'uploading'
        order by version desc offset ${kept})`
  }),
  deleteUnfinished: SqlSchema.void({
    Request: Expiry,
    execute: ({ before, environmentId }) => sql`
      delete from deployments
      where environment_id = ${environmentId} and status = 'uploading' and created_at < ${before}`
  }),
  deleteOld: SqlSchema.void({
    Request: Retention,
    execute: ({ environmentId, kept, since }) => sql`
      delete from deployments d where d.id in (
        select id from deployments
        where environment_id = ${environmentId} and status = 'ready'
        order by version desc offset ${kept})
      and (d.deactivated_at is null or d.deactivated_at < ${since})
      and not exists (select from hosted_apps a where a.live_id = d.id)`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { find, live, manifest, missing, page, staleFiles } = reads(sql)
  const { activate, insert, lockApp, markReady } = changes(sql)
  const { deleteOld, deleteUnfinished, environments, trimUnfinished } = removals(sql)
  const insertFiles = (
    environmentId: EnvironmentId,
    id: DeploymentId,
    files: ReadonlyArray<FileRow>
  ) => sql`
    insert into deployment_files (deployment_id, environment_id, path, sha256, size)
    select ${id}, ${environmentId}, f.path, f.sha256, f.size from unnest(
      ${files.map(({ path }) => path)}::text[],
      ${files.map(({ sha256 }) => sha256)}::text[],
      ${files.map(({ size }) => size)}::int[]) as f (path, sha256, size)`
  return {
    /** Finds a deployment by id or version. */
    find: (ref: typeof Ref.Type) => orDieWithTimeout(find(ref)),
    /** Lists deployments below a version, newest first. */
    page: (request: typeof Page.Type) => orDieWithTimeout(page(request)),
    /** Finds the live deployment. */
    live: (environmentId: EnvironmentId) => orDieWithTimeout(live(environmentId)),
    /** Finds files by path in the versions that were live since a time, each in the latest of them. */
    staleFiles: (request: typeof StaleFiles.Type) => orDieWithTimeout(staleFiles(request)),
    /** Lists files of a deployment that are not stored, each once. */
    missing: (target: typeof Target.Type) => orDieWithTimeout(missing(target)),
    /** Lists the files of a deployment; undefined if it has been deleted. */
    files: (target: typeof Target.Type) =>
      Effect.map(orDieWithTimeout(manifest(target)), ({ manifest }) =>
        manifest === null ? undefined : parseManifest(manifest)
      ),
    /** Locks the app of an environment until the transaction ends. */
    lockApp: (environmentId: EnvironmentId) => orDieWithTimeout(lockApp(environmentId)),
    /** Locks the app without creating its row: the environment may have been deleted. */
    lockAppIfAny: (environmentId: EnvironmentId) =>
      Effect.asVoid(
        orDieWithTimeout(sql`
          select from hosted_apps where environment_id = ${environmentId} for update`)
      ),
    /** Inserts a deployment with its files. Lock the app first. */
    insert: Effect.fnUntraced(function* (row: typeof NewRow.Type, files: ReadonlyArray<FileRow>) {
      yield* orDieWithTimeout(insert(row))
      yield* orDieWithTimeout(insertFiles(row.environmentId, row.id, files))
    }),
    markReady: (request: typeof At.Type) => orDieWithTimeout(markReady(request)),
    /** Makes a deployment live. Lock the app first. */
    activate: (request: typeof At.Type) => orDieWithTimeout(activate(request)),
    /** Lists environments that ever had a deployment. */
    environments: Effect.map(orDieWithTimeout(environments(undefined)), (rows) =>
      rows.map(({ environmentId }) => environmentId)
    ),
    /** Deletes all but the newest unfinished deployments. */
    trimUnfinished: (environmentId: EnvironmentId, kept: number) =>
      orDieWithTimeout(trimUnfinished({ environmentId, kept })),
    /** Deletes unfinished deployments from before a time. */
    deleteUnfinished: (environmentId: EnvironmentId, before: Time) =>
      orDieWithTimeout(deleteUnfinished({ environmentId, before })),
    /** Deletes deployments but the newest, the live one, and those that were live since a time. */
    deleteOld: (request: typeof Retention.Type) => orDieWithTimeout(deleteOld(request))
  }
})

/** Repository of `deployments`, `deployment_files` and `hosted_apps`. */
export class DeploymentRepository extends Context.Service<DeploymentRepository>()(
  "sql/hosting/deployments/DeploymentRepository",
  { make }
) {
  static readonly layer = Layer.effect(DeploymentRepository, this.make)
}

const isDeploymentId = Schema.is(DeploymentId)

/** Parses the reference of a deployment in a path; none if it cannot name one. */
export const parseRef = (text: string): Option.Option<Pick<typeof Ref.Type, "id" | "version">> => {
  if (/^[1-9]\d{0,8}$/.test(text)) return Option.some({ id: null, version: Number(text) })
  return isDeploymentId(text) ? Option.some({ id: text, version: null }) : Option.none()
}
