/** Tenancy: developers, projects, environments, keys and configs; the keys that sign tokens. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table developers (
      id text primary key,
      email text not null unique,
      password_hash text not null,
      created_at timestamptz not null
    )`
  yield* sql`
    create table projects (
      id text primary key,
      name text not null,
      slug text not null unique,
      created_at timestamptz not null
    )`
  yield* sql`
    create table environments (
      id text primary key,
      project_id text not null references projects on delete cascade,
      name text not null check (name in ('development', 'production')),
      created_at timestamptz not null,
      unique (project_id, name)
    )`
  yield* sql`
    create table keys (
      id text primary key,
      environment_id text not null references environments on delete cascade,
      kind text not null check (kind in ('publishable', 'secret')),
      hash text not null unique,
      prefix text not null,
      plain text check (kind = 'publishable' or plain is null),
      created_at timestamptz not null,
      revoked_at timestamptz
    )`
  yield* sql`create index keys_environment on keys (environment_id)`
  yield* sql`
    create table configs (
      environment_id text not null references environments on delete cascade,
      version int not null,
      document text not null,
      pushed_by text not null,
      created_at timestamptz not null,
      primary key (environment_id, version)
    )`
  yield* sql`
    create table signing_keys (
      kid text primary key,
      public_jwk text not null,
      private_jwk_sealed text not null,
      created_at timestamptz not null
    )`
})
