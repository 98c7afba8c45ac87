-- Two roles for the service's database. svc_owner owns the tables and migrates them; svc_app runs the
-- service and can neither change nor delete entries of the audit log. Run it as a superuser, connected to
-- the service's database (psql 15 or newer), and again after a restore:
--
--   SVC_OWNER_PASSWORD=... SVC_APP_PASSWORD=... psql postgres://postgres@host/svc --file=deploy/roles.sql
--
-- Then migrate as svc_owner before each new version starts (node src/server/migrate.ts), and give the
-- service DATABASE_URL=postgres://svc_app:...@host/svc. Tables that exist change their owner.
\set ON_ERROR_STOP on
\getenv owner_password SVC_OWNER_PASSWORD
\getenv app_password SVC_APP_PASSWORD
begin;
select 'create role svc_owner' where to_regrole('svc_owner') is null \gexec
select 'create role svc_app' where to_regrole('svc_app') is null \gexec
alter role svc_owner login nosuperuser nocreatedb nocreaterole password :'owner_password';
alter role svc_app login nosuperuser nocreatedb nocreaterole password :'app_password';
-- The owner can dump what the service creates.
grant svc_app to svc_owner;

select format('alter database %I owner to svc_owner', current_database()) \gexec
select format('revoke all on database %I from public', current_database()) \gexec
select format('grant connect on database %I to svc_app', current_database()) \gexec

revoke all on schema public from public;
grant usage, create on schema public to svc_owner;
grant usage on schema public to svc_app;
-- The cluster's list of runners and its locks, which the service creates itself.
create schema if not exists svc_app;
alter schema svc_app owner to svc_app;
-- As the migrator makes it. While it is empty, the service refuses to start.
create table if not exists public.migrations (
  migration_id integer primary key,
  created_at timestamptz not null default now(),
  name text not null
);

select format('alter %s public.%I owner to svc_owner', case relkind when 'S' then 'sequence' else 'table' end, relname)
from pg_class c
where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'S')
  and not exists (select from pg_depend d where d.objid = c.oid and d.deptype in ('a', 'i') and c.relkind = 'S') \gexec
select format('alter function %s owner to svc_owner', oid::regprocedure)
from pg_proc where pronamespace = 'public'::regnamespace \gexec

grant select, insert, update, delete on all tables in schema public to svc_app;
grant usage on all sequences in schema public to svc_app;
alter default privileges for role svc_owner in schema public
  grant select, insert, update, delete on tables to svc_app;
alter default privileges for role svc_owner in schema public grant usage on sequences to svc_app;
-- A migration does the same on a new database.
select 'revoke update, delete on public.audit from svc_app' where to_regclass('public.audit') is not null \gexec
select format('revoke update, delete on public.%I from svc_app', relname)
from pg_class where relnamespace = 'public'::regnamespace and relname in ('ledger_transactions', 'ledger_postings') \gexec
revoke insert, update, delete on public.migrations from svc_app;
commit;
