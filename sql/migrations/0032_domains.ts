/**
 * Custom domains of hosted apps. Several environments may claim a domain; one of them has verified it.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table hosted_domains (
      environment_id text not null references environments on delete cascade,
      domain text not null,
      token text not null,
      created_at timestamptz not null,
      verified_at timestamptz,
      primary key (environment_id, domain)
    )`
  yield* sql`
    create unique index hosted_domains_verified on hosted_domains (domain)
    where verified_at is not null`
})
