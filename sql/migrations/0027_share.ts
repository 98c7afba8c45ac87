/** Share links, daily counts of their visits, and what players show of their X profile. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Without `player_id`: a labelled link of the developer.
  yield* sql`
    create table share_links (
      id text primary key,
      environment_id text not null references environments on delete cascade,
      player_id text references players on delete cascade,
      kind text not null check (kind in ('plain', 'score', 'challenge')),
      score double precision check ((score is null) = (kind = 'plain')),
      show_name boolean not null,
      label text,
      created_at timestamptz not null
    )`
  yield* sql`create index share_links_player on share_links (player_id, created_at)`
  yield* sql`
    create index share_links_labelled on share_links (environment_id, created_at)
    where player_id is null`
  // The counts outlive their link: they name no player.
  yield* sql`
    create table share_days (
      environment_id text not null references environments on delete cascade,
      day date not null,
      link_id text not null,
      visits bigint not null,
      new_players bigint not null,
      plays bigint not null,
      primary key (environment_id, day, link_id)
    )`
  // Hashes of visitors under the salt of their day. Without the salt they match nobody.
  yield* sql`
    create table share_salts (
      day date primary key,
      salt bytea not null
    )`
  yield* sql`
    create table share_visitors (
      environment_id text not null references environments on delete cascade,
      day date not null,
      link_id text not null,
      event text not null check (event in ('landed', 'played', 'arrived')),
      visitor bytea not null,
      primary key (environment_id, day, link_id, event, visitor)
    )`
  yield* sql`create index share_visitors_day on share_visitors (day)`
  yield* sql`
    alter table identities add column name text, add column avatar_url text,
      add column visible boolean not null default false`
})
