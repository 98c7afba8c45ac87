/** Lets time pass for the sliding windows of rate limits, whose times are those of Postgres. */
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"

/** Moves every counted request into the past, and the clock of the nodes forward. */
export const passRateWindows = Effect.fnUntraced(function* (seconds: number) {
  const sql = yield* SqlClient.SqlClient
  const millis = seconds * 1000
  yield* sql`update rate_windows set taken = array(select t - ${millis}::float8 from unnest(taken) t)`
  yield* TestClock.adjust(`${seconds} seconds`)
})
