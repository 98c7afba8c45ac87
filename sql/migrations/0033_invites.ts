/** Invite codes, their redemptions, and the confirmation of developers' addresses. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table developers add column email_verified_at timestamptz`
  yield* sql`
    create table invite_codes (
      id text primary key,
      code_hash text not null unique,
      uses int not null check (uses > 0),
      used int not null default 0 check (used between 0 and uses),
      note text not null,
      created_at timestamptz not null,
      revoked_at timestamptz
    )`
  // An account redeems one code in its life.
  yield* sql`
    create table invite_redemptions (
      developer_id text primary key references developers on delete cascade,
      code_id text not null references invite_codes,
      redeemed_at timestamptz not null
    )`
  yield* sql`create index invite_redemptions_code on invite_redemptions (code_id)`
  yield* sql`
    create table developer_email_links (
      hash text primary key,
      developer_id text not null references developers on delete cascade,
      email text not null,
      expires_at timestamptz not null
    )`
  yield* sql`create index developer_email_links_developer on developer_email_links (developer_id)`
  yield* sql`create index developer_email_links_expiry on developer_email_links (expires_at)`
})
