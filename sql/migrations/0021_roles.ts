/**
 * Roles: the owner of the tables migrates, and the service runs as a role that can only read and
 * insert entries of the audit log. Default privileges of the owner grant that role more, so this
 * migration revokes them. A function with the rights of the owner deletes old entries; the trigger
 * still guards younger ones.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // The table is qualified, so that a table of the caller cannot take its place.
  yield* sql`
    do $$ begin
      execute format(
        'create function sweep_audit(before timestamptz) returns void language sql security definer '
        'set search_path = pg_catalog, pg_temp as %L',
        format('delete from %I.audit where at < before', current_schema()));
    end $$`
  yield* sql`
    do $$ declare grantee text; begin
      for grantee in
        select distinct pg_get_userbyid(entry.grantee) from pg_class c, aclexplode(c.relacl) entry
        where c.oid = 'audit'::regclass and entry.grantee not in (0, c.relowner)
      loop
        execute format('revoke update, delete, truncate, trigger on audit from %I', grantee);
      end loop;
    end $$`
})
