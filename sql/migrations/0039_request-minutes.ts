/** Counts of the requests of each environment, by minute. The service keeps them for a day. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table request_minutes (
      environment_id text not null references environments on delete cascade,
      minute timestamptz not null,
      requests int not null,
      client_errors int not null,
      server_errors int not null,
      primary key (environment_id, minute)
    )`
  yield* sql`create index request_minutes_minute on request_minutes (minute)`
})
