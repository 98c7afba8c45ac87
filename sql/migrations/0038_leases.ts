/**
 * Leases of runners on the functions of environments. The row stays when the lease ends: the epoch
 * grows with each holder, and refuses the writes of an older one.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table function_hosts (
      environment_id text primary key references environments on delete cascade,
      node text not null,
      address text not null,
      epoch int not null,
      lease_until timestamptz not null
    )`
  yield* sql`create index function_hosts_node on function_hosts (node)`
})
