/** What is known of players beside their names: the age a platform tells, the wish for news. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // `signalled_age_band`: the strictest that was ever told; an age that is declared later may not be
  // looser.
  yield* sql`
    alter table players
      add column signalled_age_band text check (signalled_age_band in ('child', 'teen')),
      add column news_opt_in boolean,
      add column news_chosen_at timestamptz,
      add check ((news_opt_in is null) = (news_chosen_at is null))`
})
