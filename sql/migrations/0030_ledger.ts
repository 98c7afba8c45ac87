/**
 * The ledger of prepaid money in integer cents: a transaction for each event, with postings that add up to
 * zero. Triggers refuse unbalanced transactions, and every update, delete and truncate; the service's role
 * has no right to them either. A developer with a ledger cannot be deleted.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const tables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // `source` names the event, so that it is posted once, however often and wherever it arrives.
  yield* sql`
    create table ledger_transactions (
      id text primary key,
      developer_id text not null references developers,
      kind text not null,
      source text not null unique,
      description text not null,
      created_at timestamptz not null
    )`
  yield* sql`
    create table ledger_postings (
      sequence bigint generated always as identity primary key,
      id text not null unique,
      transaction_id text not null references ledger_transactions,
      developer_id text not null references developers,
      account text not null,
      amount bigint not null check (amount <> 0),
      balance_after bigint not null,
      created_at timestamptz not null,
      check (account not in ('prepaid', 'invite', 'invite_pending') or balance_after >= 0),
      check (account <> 'owed' or balance_after <= 0)
    )`
  yield* sql`create index ledger_postings_developer on ledger_postings (developer_id, sequence)`
  yield* sql`create index ledger_postings_transaction on ledger_postings (transaction_id)`
})

const triggers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create function ledger_is_append_only() returns trigger language plpgsql as $$
    begin
      raise exception 'the ledger is append-only';
    end $$`
  for (const table of ["ledger_transactions", "ledger_postings"]) {
    yield* sql`
      create trigger ${sql(`${table}_append_only`)} before update or delete on ${sql(table)}
      for each row execute function ledger_is_append_only()`
    yield* sql`
      create trigger ${sql(`${table}_not_emptied`)} before truncate on ${sql(table)}
      for each statement execute function ledger_is_append_only()`
  }
  yield* sql`
    create function ledger_is_balanced() returns trigger language plpgsql as $$
    begin
      if (select sum(amount) from ledger_postings where transaction_id = new.transaction_id) <> 0 then
        raise exception 'the postings of % do not add up to zero', new.transaction_id;
      end if;
      return null;
    end $$`
  yield* sql`
    create constraint trigger ledger_postings_balanced after insert on ledger_postings
    deferrable initially deferred for each row execute function ledger_is_balanced()`
  // Default privileges of the owner grant the service's role more.
  yield* sql`
    do $$ declare entry record; begin
      for entry in
        select distinct c.relname, pg_get_userbyid(a.grantee) as grantee
        from pg_class c, aclexplode(c.relacl) a
        where c.oid in ('ledger_transactions'::regclass, 'ledger_postings'::regclass)
          and a.grantee not in (0, c.relowner)
      loop
        execute format('revoke update, delete, truncate, trigger on %I from %I',
          entry.relname, entry.grantee);
      end loop;
    end $$`
})

export default Effect.andThen(tables, triggers)
