/**
 * Hosting. A blob is a file of an environment by the hash of its content; without `stored_at` it is
 * expected. `orphaned_at` is the time since when no deployment names it.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table deployments (
      id text primary key,
      environment_id text not null references environments on delete cascade,
      version int not null,
      status text not null,
      message text,
      file_count int not null,
      total_bytes bigint not null,
      created_by text not null,
      created_at timestamptz not null,
      finalized_at timestamptz,
      activated_at timestamptz,
      deactivated_at timestamptz,
      unique (environment_id, version)
    )`
  yield* sql`
    create table deployment_files (
      deployment_id text not null references deployments on delete cascade,
      environment_id text not null,
      path text not null,
      sha256 text not null,
      size int not null,
      primary key (deployment_id, path)
    )`
  yield* sql`create index deployment_files_blob on deployment_files (environment_id, sha256)`
  yield* sql`
    create table hosted_apps (
      environment_id text primary key references environments on delete cascade,
      last_version int not null default 0,
      live_id text references deployments on delete set null
    )`
  yield* sql`create index hosted_apps_live on hosted_apps (live_id)`
  yield* sql`
    create table blobs (
      environment_id text not null references environments on delete cascade,
      sha256 text not null,
      size int not null,
      stored_at timestamptz,
      brotli_bytes int,
      gzip_bytes int,
      orphaned_at timestamptz,
      primary key (environment_id, sha256)
    )`
  yield* sql`
    create index blobs_orphaned on blobs (environment_id, orphaned_at) where orphaned_at is not null`
})
