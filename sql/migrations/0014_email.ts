/** Players found by email; mails to be sent, in development without SMTP those that would have been. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index identities_email on identities (environment_id, lower(email))`
  // `player_id`: null while it is not known whether anybody has the address. `due_at`: when it is to
  // be tried, or is believed to have been dropped by whoever tries; null when it is only kept.
  yield* sql`
    create table mails (
      id text primary key,
      environment_id text not null references environments on delete cascade,
      player_id text references players on delete cascade,
      purpose text not null,
      sealed text not null,
      attempts int not null,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      due_at timestamptz
    )`
  yield* sql`create index mails_due on mails (due_at)`
  yield* sql`create index mails_player on mails (player_id)`
})
