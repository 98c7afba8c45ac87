/** Players' sign-in methods, one row each, and single-use codes. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // `subject`: the lower-case address of an email identity, or the provider's user id.
  yield* sql`
    create table identities (
      environment_id text not null references environments on delete cascade,
      provider text not null check (provider in ('email', 'google', 'discord', 'apple', 'x')),
      subject text not null,
      player_id text not null references players on delete cascade,
      email text,
      email_verified boolean not null,
      username text,
      password_hash text check ((password_hash is not null) = (provider = 'email')),
      grant_sealed text,
      linked_at timestamptz not null,
      constraint identities_subject primary key (environment_id, provider, subject),
      constraint identities_one_a_provider unique (player_id, provider)
    )`
  yield* sql`
    create table single_use_codes (
      hash text primary key,
      environment_id text not null references environments on delete cascade,
      player_id text not null references players on delete cascade,
      purpose text not null,
      data text not null,
      expires_at timestamptz not null
    )`
  yield* sql`create index single_use_codes_player on single_use_codes (player_id, purpose)`
  yield* sql`create index single_use_codes_expiry on single_use_codes (expires_at)`
})
