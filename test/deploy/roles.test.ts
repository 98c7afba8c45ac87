/**
 * Runs `deploy/roles.sql` and the service in its two roles, on a Postgres of the distribution: the owner
 * migrates, the service runs as the other role, and that role cannot rewrite the audit log.
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { guest, request } from "#testing/players"
import { startRunner } from "#testing/runners"
import { makeDatabase, runOn } from "../support/database-roles.ts"
import { needsPrograms, programs, startServer } from "../support/debian-postgres.ts"
import { targetOf } from "../support/runner-target.ts"
import { masterKeyOf } from "../support/master-keys.ts"
import { dataFolder } from "../support/data-folder.ts"

const temporaryDirectory = dataFolder("roles-")

/** What a service that is taken over might try on the audit log and the ledger. */
const attempts = [
  "update audit set details = '{}'",
  "delete from audit",
  "delete from audit where at < now() - interval '401 days'",
  "truncate audit",
  "drop table audit",
  "update ledger_postings set amount = 1",
  "delete from ledger_transactions",
  "truncate ledger_postings",
  "alter table ledger_postings disable trigger all",
  "alter table audit disable trigger all",
  "alter table audit disable trigger audit_append_only",
  "drop trigger audit_append_only on audit",
  "create or replace function public.audit_is_append_only() returns trigger language plpgsql as 'begin end'",
  "create trigger quiet before insert on audit for each row execute function audit_is_append_only()",
  "create rule quiet as on insert to audit do instead nothing",
  "insert into audit select * from audit on conflict (id) do update set actor_id = 'x'",
  "alter table audit rename to history",
  "set session_replication_role = replica",
  "set role svc_owner",
  "grant svc_owner to svc_app",
  "create table public.other (id int)",
  "delete from migrations",
  // A table of its own schema does not take the place of the audit log.
  "create table svc_app.audit (at timestamptz); select sweep_audit(now())"
]

describe(`the two roles of the database${needsPrograms}`, () => {
  it.live.skipIf(programs === undefined)(
    "runs the service by a database role that can neither change nor delete an audit entry",
    () =>
      Effect.gen(function* () {
        const bin = programs ?? ""
        const { as, makeRoles, refused, sql } = yield* makeDatabase(bin)
        const dataDir = yield* temporaryDirectory
        const start = (env: Readonly<Record<string, string>> = {}) =>
          startRunner({ databaseUrl: as("svc_app"), dataDir, env })

        yield* makeRoles
        const unmigrated = yield* Effect.flip(start())
        assert.match(unmigrated.message, /at migration 0, .* Migrate as their owner/)
        assert.notMatch(unmigrated.message, /\n\s+at /)

        const migrated = yield* runOn(as("svc_owner"), {}, "src/server/migrate.ts")
        assert.strictEqual(migrated.code, 0, migrated.output)
        const runner = yield* start()
        const target = yield* targetOf(dataDir, runner.url)
        const { id } = yield* guest(target)
        const banned = yield* request(`${runner.url}/v1/admin/players/${id}/ban`, {
          headers: { "x-svc-key": target.secretKey },
          body: { reason: "cheating" }
        })
        assert.strictEqual(banned.status, 200, JSON.stringify(banned.body))
        yield* runner.stop

        const entries = sql("svc_app", "select * from audit order by id")
        const before = yield* entries
        assert.include(before, "player.ban")
        for (const attempt of attempts) yield* refused("svc_app", attempt)
        assert.strictEqual(yield* entries, before)

        // The service deletes what is older than 400 days, by a function of the owner.
        const names =
          "project_id, env, actor_kind, actor_id, actor_name, address, action, target_kind, target_id, details"
        const old = `select 'old', now() - interval '401 days', ${names} from audit limit 1`
        yield* sql("svc_app", `insert into audit (id, at, ${names}) ${old}`)
        yield* sql("svc_app", "select sweep_audit(now() - interval '400 days')")
        assert.strictEqual(yield* entries, before)

        // A release that is newer than the database does not start, nor does it migrate.
        const newest = "(select max(migration_id) from migrations)"
        yield* sql("svc_owner", `delete from migrations where migration_id = ${newest}`)
        const behind = yield* Effect.flip(start())
        assert.match(behind.message, /does not own the tables\. Migrate as their owner/)
        assert.notMatch(behind.message, /\n\s+at /)
        // Run again, on tables that exist, it changes nothing.
        yield* makeRoles
        assert.match(yield* refused("svc_app", "delete from audit"), /permission denied/)
      }).pipe(Effect.scoped)
  )

  it.live.skipIf(programs === undefined)(
    "warns in production of a superuser, and names the file with the two database roles",
    () =>
      Effect.gen(function* () {
        const server = yield* startServer(programs ?? "")
        const dataDir = yield* temporaryDirectory
        const env = {
          NODE_ENV: "production",
          SVC_MASTER_KEY: masterKeyOf(5)
        }
        const runner = yield* startRunner({ databaseUrl: `${server}/postgres`, dataDir, env })
        assert.match(runner.output(), /The user of DATABASE_URL is a superuser.*deploy\/roles\.sql/)
      }).pipe(Effect.scoped)
  )
})
