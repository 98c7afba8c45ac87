/**
 * Data of share links, as JSON. Visitors of a share link by address and day, so that one address cannot
 * pretend to be any number of browsers. The addresses are hashes under the salt of their day.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table share_links add column data text`
  yield* sql`
    create table share_addresses (
      environment_id text not null references environments on delete cascade,
      day date not null,
      link_id text not null,
      event text not null check (event in ('landed', 'played')),
      address bytea not null,
      visitors int not null,
      primary key (environment_id, day, link_id, event, address)
    )`
  yield* sql`create index share_addresses_day on share_addresses (day)`
})
