/**
 * Snapshots of the data of functions. A snapshot consists of objects in the blob store; `dropped_by` is the
 * first snapshot that no longer names an object. The row of `function_data` is locked by each change.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table function_data (
      environment_id text primary key references environments on delete cascade,
      epoch int not null,
      newest_snapshot int not null default 0
    )`
  yield* sql`
    create table function_snapshots (
      environment_id text not null references environments on delete cascade,
      number int not null,
      epoch int not null,
      taken_at timestamptz not null,
      bytes bigint not null,
      manifest text not null,
      primary key (environment_id, number)
    )`
  yield* sql`
    create table function_snapshot_objects (
      environment_id text not null references environments on delete cascade,
      sha256 text not null,
      dropped_by int,
      primary key (environment_id, sha256)
    )`
  yield* sql`
    create index function_snapshot_objects_dropped
    on function_snapshot_objects (environment_id, dropped_by) where dropped_by is not null`
})
