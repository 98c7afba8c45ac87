/** Choices of players: the age band that a platform signals, and the news opt-in. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // `signalled_age_band`: the strictest band that any platform has signalled; a band that the player
  // declares later must not be less strict.
  yield* sql`
    alter table players
      add column signalled_age_band text check (signalled_age_band in ('child', 'teen')),
      add column news_opt_in boolean,
      add column news_chosen_at timestamptz,
      add check ((news_opt_in is null) = (news_chosen_at is null))`
})
