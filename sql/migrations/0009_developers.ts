/** Developers' sign-in methods, sessions and project memberships, and the data of the dashboard. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const developers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table developers alter column password_hash drop not null, add column name text`
  yield* sql`
    create table developer_sessions (
      id text primary key,
      developer_id text not null references developers on delete cascade,
      token_hash text not null unique,
      created_at timestamptz not null,
      expires_at timestamptz not null
    )`
  yield* sql`create index developer_sessions_developer on developer_sessions (developer_id)`
  yield* sql`create index developer_sessions_expiry on developer_sessions (expires_at)`
  yield* sql`
    create table developer_identities (
      provider text not null,
      subject text not null,
      developer_id text not null references developers on delete cascade,
      email text,
      username text,
      linked_at timestamptz not null,
      primary key (provider, subject),
      unique (developer_id, provider)
    )`
  yield* sql`
    create table invite_uses (
      code_hash text primary key,
      developer_id text not null references developers on delete cascade,
      used_at timestamptz not null
    )`
})

const projects = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table project_members (
      project_id text not null references projects on delete cascade,
      developer_id text not null references developers on delete cascade,
      created_at timestamptz not null,
      primary key (project_id, developer_id)
    )`
  yield* sql`create index project_members_developer on project_members (developer_id)`
  // Existing accounts belong to the operator, so they become members of every existing project.
  yield* sql`
    insert into project_members (project_id, developer_id, created_at)
    select p.id, d.id, p.created_at from projects p cross join developers d`
  yield* sql`alter table keys add column last_used_at timestamptz`
  // Set while a project is being removed; its data is deleted in batches.
  yield* sql`alter table projects add column removed_at timestamptz`
  // Active players per day, kept while the day may still be counted; the counts are permanent.
  yield* sql`
    create table player_days (
      environment_id text not null references environments on delete cascade,
      day date not null,
      player_id text not null references players on delete cascade,
      primary key (environment_id, day, player_id)
    )`
  yield* sql`create index player_days_player on player_days (player_id)`
  yield* sql`create index player_days_day on player_days (day)`
  yield* sql`
    create table daily_actives (
      environment_id text not null references environments on delete cascade,
      day date not null,
      players int not null,
      primary key (environment_id, day)
    )`
  // The last report of each node about its live connections, queues and channels.
  yield* sql`
    create unlogged table live_reports (
      environment_id text not null references environments on delete cascade,
      node text not null,
      reported_at timestamptz not null,
      connections int not null,
      document text not null,
      primary key (environment_id, node)
    ) with (fillfactor = 70)`
  // Ids sort by creation time, so this index lists the newest players.
  yield* sql`drop index players_environment`
  yield* sql`create index players_environment on players (environment_id, id) include (is_guest)`
  yield* sql`
    create index players_name on players (environment_id, lower(display_name) text_pattern_ops, id)`
})

export default Effect.andThen(developers, projects)
