/** Email look-up of players, and the mail outbox; without SMTP in development it keeps unsent mails. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index identities_email on identities (environment_id, lower(email))`
  // `player_id`: null until the address has been looked up. `due_at`: the time of the next attempt, or
  // the time when a claimed mail counts as abandoned; null for a mail that is kept and never sent.
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
