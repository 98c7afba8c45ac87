/**
 * Rows of blobs: the files of an environment by their hash, stored or expected. The bytes are in the blob
 * store. A row is locked while its bytes are removed.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate
type Time = typeof Time.Type

const Ref = Schema.Struct({ environmentId: EnvironmentId, sha256: Schema.String })

/** A blob. `brotliBytes` and `gzipBytes` are the sizes of its compressed forms, if there are any. */
const BlobRow = Schema.Struct({
  sha256: Schema.String,
  size: Schema.Int,
  stored: Schema.Boolean,
  brotliBytes: Schema.NullOr(Schema.Int),
  gzipBytes: Schema.NullOr(Schema.Int)
})
export type BlobRow = typeof BlobRow.Type

const Stored = Schema.Struct({
  ...Ref.fields,
  size: Schema.Int,
  now: Time,
  brotliBytes: Schema.NullOr(Schema.Int),
  gzipBytes: Schema.NullOr(Schema.Int)
})

const Marking = Schema.Struct({ environmentId: EnvironmentId, now: Time })

const Expired = Schema.Struct({ environmentId: EnvironmentId, before: Time })

const Batch = Schema.Struct({ ...Expired.fields, limit: Schema.Int })

const Sha = Schema.Struct({ sha256: Schema.String })

const statements = (sql: SqlClient.SqlClient) => {
  const columns = sql`
    b.sha256, b.size, b.stored_at is not null as stored, b.brotli_bytes, b.gzip_bytes`
  const named = sql`
    exists (select from deployment_files f
      where f.environment_id = b.environment_id and f.sha256 = b.sha256)`
  return {
    find: SqlSchema.findOneOption({
      Request: Ref,
      Result: BlobRow,
      execute: ({ environmentId, sha256 }) => sql`
        select ${columns} from blobs b
        where b.environment_id = ${environmentId} and b.sha256 = ${sha256}`
    }),
    ofDeployment: SqlSchema.findAll({
      Request: Schema.Struct({ environmentId: EnvironmentId, deploymentId: Schema.String }),
      Result: BlobRow,
      execute: ({ deploymentId, environmentId }) => sql`
        select ${columns} from blobs b
        where b.environment_id = ${environmentId} and b.sha256 in (
          select sha256 from deployment_files
          where environment_id = ${environmentId} and deployment_id = ${deploymentId})`
    }),
    paths: SqlSchema.findAll({
      Request: Ref,
      Result: Schema.Struct({ path: Schema.String }),
      execute: ({ environmentId, sha256 }) => sql`
        select path from deployment_files
        where environment_id = ${environmentId} and sha256 = ${sha256} limit 20`
    }),
    markStored: SqlSchema.findAll({
      Request: Stored,
      Result: Sha,
      execute: ({ brotliBytes, environmentId, gzipBytes, now, sha256, size }) => sql`
        update blobs set stored_at = ${now}, brotli_bytes = ${brotliBytes}, gzip_bytes = ${gzipBytes}
        where environment_id = ${environmentId} and sha256 = ${sha256} and size = ${size}
        returning sha256`
    }),
    markOrphans: SqlSchema.void({
      Request: Marking,
      execute: ({ environmentId, now }) => sql`
        update blobs b set orphaned_at = case when ${named} then null else ${now}::timestamptz end
        where b.environment_id = ${environmentId} and (b.orphaned_at is null) <> ${named}`
    }),
    forgetOrphans: SqlSchema.void({
      Request: Expired,
      execute: ({ before, environmentId }) => sql`
        update blobs b set stored_at = null
        where b.environment_id = ${environmentId} and b.orphaned_at < ${before}
          and b.stored_at is not null and not ${named}`
    }),
    lockForgotten: SqlSchema.findAll({
      Request: Batch,
      Result: Sha,
      execute: ({ before, environmentId, limit }) => sql`
        select b.sha256 from blobs b
        where b.environment_id = ${environmentId} and b.orphaned_at < ${before}
          and b.stored_at is null and not ${named}
        order by b.sha256 limit ${limit} for update skip locked`
    })
  }
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const all = statements(sql)
  const expect = SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: EnvironmentId,
      hashes: Schema.Array(Schema.String),
      sizes: Schema.Array(Schema.Int)
    }),
    Result: BlobRow,
    execute: ({ environmentId, hashes, sizes }) => sql`
      insert into blobs as b (environment_id, sha256, size)
      select ${environmentId}, f.sha256, f.size
      from unnest(${[...hashes]}::text[], ${[...sizes]}::int[]) as f (sha256, size)
      order by f.sha256
      on conflict (environment_id, sha256) do update set orphaned_at = null,
        size = case when b.stored_at is null then excluded.size else b.size end
      returning sha256, size, stored_at is not null as stored, brotli_bytes, gzip_bytes`
  })
  const bytes = SqlSchema.findOne({
    Request: EnvironmentId,
    Result: Schema.Struct({ bytes: Schema.Finite }),
    execute: (environmentId) => sql`
      select coalesce(sum(size), 0)::float8 as bytes from blobs
      where environment_id = ${environmentId}`
  })
  return {
    find: (ref: typeof Ref.Type) => orDieWithTimeout(all.find(ref)),
    /** Lists the blobs of a deployment. */
    ofDeployment: (environmentId: EnvironmentId, deploymentId: string) =>
      orDieWithTimeout(all.ofDeployment({ environmentId, deploymentId })),
    /** Lists some of the paths under which deployments name a blob. */
    paths: (ref: typeof Ref.Type) =>
      Effect.map(orDieWithTimeout(all.paths(ref)), (rows) => rows.map(({ path }) => path)),
    /** Adds rows for files that are expected from now on; returns all of them, in any order. */
    expect: (request: Parameters<typeof expect>[0]) => orDieWithTimeout(expect(request)),
    /** Bytes of all stored and expected blobs of an environment. */
    bytesOfEnvironment: (environmentId: EnvironmentId) =>
      Effect.map(orDieWithTimeout(bytes(environmentId)), (row) => row.bytes),
    /** Marks a blob as stored; false if no deployment expects it any more. */
    markStored: (request: typeof Stored.Type) =>
      Effect.map(orDieWithTimeout(all.markStored(request)), (rows) => rows.length === 1),
    /** Marks a blob as expected again, since its bytes are lost. */
    markLost: ({ environmentId, sha256 }: typeof Ref.Type) =>
      Effect.asVoid(
        orDieWithTimeout(sql`
          update blobs set stored_at = null
          where environment_id = ${environmentId} and sha256 = ${sha256}`)
      ),
    /** Marks the blobs that no deployment names, and unmarks those that one names again. */
    markOrphans: (request: typeof Marking.Type) => orDieWithTimeout(all.markOrphans(request)),
    /** Marks blobs that are orphans since a time as not stored; then their bytes can be removed. */
    forgetOrphans: (environmentId: EnvironmentId, before: Time) =>
      orDieWithTimeout(all.forgetOrphans({ environmentId, before })),
    /** Locks forgotten blobs until the transaction ends. */
    lockForgotten: (request: typeof Batch.Type) =>
      Effect.map(orDieWithTimeout(all.lockForgotten(request)), (rows) =>
        rows.map(({ sha256 }) => sha256)
      ),
    delete: (environmentId: EnvironmentId, hashes: ReadonlyArray<string>) =>
      Effect.asVoid(
        orDieWithTimeout(sql`
          delete from blobs
          where environment_id = ${environmentId} and sha256 = any(${[...hashes]}::text[])`)
      )
  }
})

/** Repository of `blobs`. */
export class BlobRepository extends Context.Service<BlobRepository>()(
  "sql/hosting/blobs/BlobRepository",
  { make }
) {
  static readonly layer = Layer.effect(BlobRepository, this.make)
}
