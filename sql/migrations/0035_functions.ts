/**
 * Functions. The row of `functions` is locked by each change, so versions are issued once. A delivery is a
 * message of a queue or an event for a hook; without `due_at` it has failed for good.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const settings = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table functions (
      environment_id text primary key references environments on delete cascade,
      enabled boolean not null default false,
      suspended_reason text,
      cpu_ms int not null,
      sub_requests int not null,
      last_version int not null default 0,
      live_version int,
      hooks text[] not null default '{}'
    )`
  yield* sql`
    create table function_deployments (
      environment_id text not null references environments on delete cascade,
      version int not null,
      created_at timestamptz not null,
      created_by text not null,
      activated_at timestamptz,
      message text,
      compatibility_date text,
      main_module text not null,
      modules jsonb not null,
      bindings jsonb not null,
      vars jsonb not null,
      crons text[] not null,
      hooks text[] not null,
      bundle bytea not null,
      primary key (environment_id, version)
    )`
  yield* sql`
    create table function_secrets (
      environment_id text not null references environments on delete cascade,
      name text not null,
      sealed text not null,
      updated_at timestamptz not null,
      primary key (environment_id, name)
    )`
  yield* sql`
    create table function_crons (
      environment_id text not null references environments on delete cascade,
      cron text not null,
      due_at timestamptz not null,
      primary key (environment_id, cron)
    )`
  yield* sql`create index function_crons_due on function_crons (due_at)`
})

const records = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table function_deliveries (
      id bigint generated always as identity primary key,
      environment_id text not null references environments on delete cascade,
      kind text not null,
      target text not null,
      content_type text not null,
      body bytea not null,
      attempts int not null default 0,
      sent_at timestamptz not null,
      due_at timestamptz,
      failed_at timestamptz
    )`
  yield* sql`
    create index function_deliveries_due on function_deliveries (environment_id, due_at)
    where due_at is not null`
  yield* sql`
    create index function_deliveries_failed on function_deliveries (environment_id, failed_at)
    where failed_at is not null`
  yield* sql`
    create table function_logs (
      id bigint generated always as identity primary key,
      environment_id text not null references environments on delete cascade,
      at timestamptz not null,
      level text not null,
      message text not null,
      version int not null
    )`
  yield* sql`create index function_logs_environment on function_logs (environment_id, id)`
  yield* sql`create index function_logs_at on function_logs (at)`
  yield* sql`
    create table function_usage (
      environment_id text not null references environments on delete cascade,
      hour timestamptz not null,
      requests bigint not null,
      cpu_millis bigint not null,
      bytes bigint not null,
      primary key (environment_id, hour)
    )`
})

export default Effect.andThen(settings, records)
