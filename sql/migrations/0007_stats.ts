/** Stats: one row per player and stat with its value in every period, and the rejected values. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table stats (
      environment_id text not null,
      player_id text not null references players on delete cascade,
      stat text not null,
      aggregation text not null,
      total float8 not null,
      day date not null,
      daily float8 not null,
      week date not null,
      weekly float8 not null,
      month date not null,
      monthly float8 not null,
      primary key (player_id, environment_id, stat)
    ) with (fillfactor = 70)`
  yield* sql`
    create table stat_signals (
      id bigint generated always as identity primary key,
      environment_id text not null,
      player_id text not null references players on delete cascade,
      stat text not null,
      value float8 not null,
      reason text not null,
      created_at timestamptz not null
    )`
  yield* sql`create index stat_signals_environment on stat_signals (environment_id, id desc)`
  yield* sql`create index stat_signals_player on stat_signals (player_id)`
  yield* sql`
    create table webhook_secrets (
      environment_id text primary key references environments on delete cascade,
      sealed text not null,
      created_at timestamptz not null
    )`
})
