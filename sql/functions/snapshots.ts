/**
 * Snapshots of the data of functions: who may write them, which there are, and which objects of the blob
 * store they name. The row of `function_data` is locked by each change, so snapshots are numbered once.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const Data = Schema.Struct({ epoch: Schema.Int, newestSnapshot: Schema.Int })

const Snapshot = Schema.Struct({
  environmentId: EnvironmentId,
  number: Schema.Int,
  epoch: Schema.Int,
  takenAt: Time,
  bytes: Schema.Int,
  /** The object that lists the files. */
  manifest: Schema.String
})
export type SnapshotRow = typeof Snapshot.Type

const Owner = Schema.Struct({ environmentId: EnvironmentId, epoch: Schema.Int })

const Hashes = Schema.Struct({
  environmentId: EnvironmentId,
  hashes: Schema.Array(Schema.String)
})

const Objects = Schema.Struct({ ...Hashes.fields, droppedBy: Schema.Int })

const Dropped = Schema.Struct({
  environmentId: EnvironmentId,
  before: Schema.Int,
  limit: Schema.Int
})

const Sha = Schema.Struct({ sha256: Schema.String })

const statements = (sql: SqlClient.SqlClient) => ({
  lock: SqlSchema.findOneOption({
    Request: EnvironmentId,
    Result: Data,
    execute: (environmentId) => sql`
      select epoch, newest_snapshot from function_data
      where environment_id = ${environmentId} for update`
  }),
  own: SqlSchema.void({
    Request: Owner,
    execute: ({ environmentId, epoch }) => sql`
      insert into function_data (environment_id, epoch) values (${environmentId}, ${epoch})
      on conflict (environment_id) do update set epoch = excluded.epoch`
  }),
  find: SqlSchema.findOneOption({
    Request: EnvironmentId,
    Result: Snapshot,
    execute: (environmentId) => sql`
      select environment_id, number, epoch, taken_at, bytes::float8 as bytes, manifest
      from function_snapshots
      where environment_id = ${environmentId} order by number desc limit 1`
  }),
  // A row of an older epoch's upload must not undo what the newest snapshot says.
  expect: SqlSchema.void({
    Request: Objects,
    execute: ({ droppedBy, environmentId, hashes }) => sql`
      insert into function_snapshot_objects (environment_id, sha256, dropped_by)
      select ${environmentId}, o.sha256, ${droppedBy}
      from unnest(${[...hashes]}::text[]) as o (sha256) order by o.sha256
      on conflict (environment_id, sha256) do nothing`
  }),
  keep: SqlSchema.void({
    Request: Hashes,
    execute: ({ environmentId, hashes }) => sql`
      insert into function_snapshot_objects as o (environment_id, sha256)
      select ${environmentId}, n.sha256
      from unnest(${[...hashes]}::text[]) as n (sha256) order by n.sha256
      on conflict (environment_id, sha256) do update set dropped_by = null
      where o.dropped_by is not null`
  }),
  drop: SqlSchema.void({
    Request: Objects,
    execute: ({ droppedBy, environmentId, hashes }) => sql`
      update function_snapshot_objects o set dropped_by = ${droppedBy}
      where o.environment_id = ${environmentId} and o.dropped_by is null and not exists (
        select from unnest(${[...hashes]}::text[]) as n (sha256) where n.sha256 = o.sha256)`
  }),
  append: SqlSchema.void({
    Request: Snapshot,
    execute: (row) => sql`insert into function_snapshots ${sql.insert(row)}`
  }),
  dropped: SqlSchema.findAll({
    Request: Dropped,
    Result: Sha,
    execute: ({ before, environmentId, limit }) => sql`
      select sha256 from function_snapshot_objects
      where environment_id = ${environmentId} and dropped_by <= ${before}
      order by sha256 limit ${limit} for update`
  }),
  objects: SqlSchema.findAll({
    Request: Schema.Struct({ environmentId: EnvironmentId, limit: Schema.Int }),
    Result: Sha,
    execute: ({ environmentId, limit }) => sql`
      select sha256 from function_snapshot_objects
      where environment_id = ${environmentId} order by sha256 limit ${limit} for update`
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { append, drop, dropped, expect, find, keep, lock, objects, own } = statements(sql)
  const shas = Effect.map((rows: ReadonlyArray<typeof Sha.Type>) =>
    rows.map(({ sha256 }) => sha256)
  )
  return {
    /** Locks the data of an environment until the transaction ends; none: no epoch has written yet. */
    lock: (environmentId: EnvironmentId) =>
      Effect.map(orDieWithTimeout(lock(environmentId)), Option.getOrUndefined),
    /** Sets the epoch that may write from now on. Lock the data first. */
    own: (request: typeof Owner.Type) => orDieWithTimeout(own(request)),
    /** The newest snapshot. */
    newest: (environmentId: EnvironmentId) =>
      Effect.map(orDieWithTimeout(find(environmentId)), Option.getOrUndefined),
    /** Adds objects before they are stored. Without a snapshot the service removes them again. */
    expect: (request: typeof Objects.Type) => orDieWithTimeout(expect(request)),
    /** Adds a snapshot of these objects and removes all but the newest `kept`. Lock the data first. */
    append: Effect.fnUntraced(function* (
      row: SnapshotRow,
      hashes: ReadonlyArray<string>,
      kept: number
    ) {
      const { environmentId, number } = row
      yield* orDieWithTimeout(append(row))
      yield* orDieWithTimeout(keep({ environmentId, hashes }))
      yield* orDieWithTimeout(drop({ environmentId, hashes, droppedBy: number }))
      yield* orDieWithTimeout(sql`
        update function_data set newest_snapshot = ${number}
        where environment_id = ${environmentId}`)
      yield* orDieWithTimeout(sql`
        delete from function_snapshots
        where environment_id = ${environmentId} and number <= ${number - kept}`)
    }),
    /** Locks objects that no snapshot from a number on names. */
    lockDropped: (request: typeof Dropped.Type) => shas(orDieWithTimeout(dropped(request))),
    /** Locks some objects of an environment. */
    lockObjects: (environmentId: EnvironmentId, limit: number) =>
      shas(orDieWithTimeout(objects({ environmentId, limit }))),
    deleteObjects: (environmentId: EnvironmentId, hashes: ReadonlyArray<string>) =>
      Effect.asVoid(
        orDieWithTimeout(sql`
          delete from function_snapshot_objects
          where environment_id = ${environmentId} and sha256 = any(${[...hashes]}::text[])`)
      ),
    /** Removes all snapshots, and refuses those that are being taken. Lock the data first. */
    deleteAll: Effect.fnUntraced(function* (environmentId: EnvironmentId) {
      yield* orDieWithTimeout(
        sql`delete from function_snapshots where environment_id = ${environmentId}`
      )
      yield* orDieWithTimeout(sql`
        update function_data set newest_snapshot = newest_snapshot + 1
        where environment_id = ${environmentId}`)
    })
  }
})

/** Repository of `function_data`, `function_snapshots` and `function_snapshot_objects`. */
export class SnapshotRepository extends Context.Service<SnapshotRepository>()(
  "sql/functions/snapshots/SnapshotRepository",
  { make }
) {
  static readonly layer = Layer.effect(SnapshotRepository, this.make)
}
