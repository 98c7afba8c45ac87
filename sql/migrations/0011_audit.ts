/**
 * The audit log. It has no foreign keys, so an entry outlives the objects that it names. A trigger
 * rejects updates, and deletes of entries younger than 400 days. The trigger uses the database's clock,
 * so that it also guards against a fault of the service.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table audit (
      id text primary key,
      at timestamptz not null,
      project_id text not null,
      env text check (env in ('development', 'production')),
      actor_kind text not null check (actor_kind in ('developer', 'key', 'system')),
      actor_id text not null,
      actor_name text not null,
      address text,
      action text not null,
      target_kind text not null,
      target_id text not null,
      details text not null
    )`
  yield* sql`create index audit_project on audit (project_id, id)`
  yield* sql`create index audit_age on audit (at)`
  yield* sql`
    create function audit_is_append_only() returns trigger language plpgsql as $$
    begin
      if tg_op = 'DELETE' then
        if old.at < now() - interval '400 days' then return old; end if;
      end if;
      raise exception 'the audit log is append-only';
    end $$`
  yield* sql`
    create trigger audit_append_only before update or delete on audit
    for each row execute function audit_is_append_only()`
  yield* sql`
    create trigger audit_not_emptied before truncate on audit
    for each statement execute function audit_is_append_only()`
})
