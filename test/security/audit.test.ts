/**
 * Attacks on the audit log: a forged actor, a change without an entry, an entry without a change, and
 * entries that somebody edits or deletes.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { SqlClient } from "effect/sql"
import { TestApp } from "#testing/app"
import { guest, request } from "#testing/players"
import { appWithSql } from "../support/devices.ts"
import { makeProject, signUp } from "../support/operator-harness.ts"

const App = appWithSql({ SVC_SIGNUPS: "open" })

const entriesOf = Effect.fnUntraced(function* (target: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`
    select actor_kind as kind, actor_id as actor, action, address from audit where target_id = ${target} order by id`
})

layer(App, { timeout: "120 seconds", excludeTestServices: true })("the audit log", (it) => {
  it.effect("records the authenticated actor and ignores an actor in body or headers", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      const developer = yield* signUp("real")
      const victim = yield* signUp("framed")
      const { development, projectId } = yield* makeProject(developer)
      const actor = { kind: "system", id: victim.id, name: "framed" }
      const forged = {
        actor,
        actorId: victim.id,
        actorKind: "system",
        at: "1970-01-01",
        action: "player.unban",
        target: { kind: "player", id: "pl_1" },
        address: "8.8.8.8"
      }
      const headers = {
        "x-forwarded-for": "8.8.8.8",
        "x-actor": victim.id,
        forwarded: "for=8.8.8.8"
      }
      for (const [mount, own, kind] of [
        [`${url}/v1/admin`, { "x-svc-key": development.secretKey }, "key"],
        [`${url}/v1/projects/${projectId}/environments/development`, developer.headers, "developer"]
      ] as const) {
        const { id } = yield* guest(development)
        const ban = yield* request(`${mount}/players/${id}/ban`, {
          headers: { ...own, ...headers },
          body: { reason: "x", ...forged }
        })
        assert.strictEqual(ban.status, 200)
        const entries = yield* entriesOf(id)
        assert.lengthOf(entries, 1)
        const { actor: named, ...entry } = Object(entries[0])
        assert.deepStrictEqual(entry, {
          kind,
          action: "player.ban",
          address: "127.0.0.1"
        })
        assert.notStrictEqual(named, victim.id)
        if (kind === "developer") assert.strictEqual(named, developer.id)
      }
    })
  )

  it.effect("adds no entry without a change, and rolls a change without an entry back", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { url } = yield* TestApp
      const developer = yield* signUp("auditor")
      const { development, production } = yield* makeProject(developer)
      const { id } = yield* guest(development)
      const ask = (path: string, body: unknown, key = development.secretKey, method = "POST") =>
        request(`${url}/v1/admin/${path}`, { method, headers: { "x-svc-key": key }, body })
      const before = yield* sql`select count(*)::int as count from audit`
      const refused = [
        ask(`players/${id}/ban`, {}, production.secretKey),
        ask(`players/${id}/ban`, {}, development.publishableKey),
        ask(`players/${id}/ban`, {}, "sk_none"),
        ask(`players/${id}/ban`, { reason: 7 }),
        ask(`players/${id}/ban`, { reason: "x".repeat(501) }),
        ask(`players/${id}/ban`, { reason: "a\0b" }),
        ask(`players/${id}/ban`, { publicNote: "a\0b" }),
        ask(`players/${id}/ban`, { durationHours: 0 }),
        ask(`players/${id}/ban`, { durationHours: 8785 }),
        ask(`players/${id}/ban`, "{ broken"),
        ask("players/pl_0/ban", {}),
        ask(`players/${id}x/ban`, {}),
        ask("players/pl_0/unban", {}),
        ask(`players/${id}/unban`, {}),
        ask("players/pl_0/delete", undefined),
        ask("players/pl_0/export", undefined),
        ask("appeals/apl_0/resolve", { accept: true }),
        ask(`players/${id}/age`, { band: "baby" }, development.secretKey, "PUT"),
        ask("players/pl_0/age", { band: "teen" }, development.secretKey, "PUT"),
        ask("auth/providers/google", {}, development.secretKey, "PUT"),
        ask("auth/providers/google", undefined, development.secretKey, "DELETE")
      ]
      const answers = yield* Effect.all(refused)
      // Two succeed without a change: no ban to lift, and no credentials to delete.
      const successes = answers.map(({ status }) => status).filter((status) => status < 400)
      assert.deepStrictEqual(successes, [200, 200])
      assert.deepStrictEqual(yield* sql`select count(*)::int as count from audit`, before)

      yield* sql`alter table audit add constraint refused check (action <> 'player.ban') not valid`
      assert.strictEqual((yield* ask(`players/${id}/ban`, {})).status, 500)
      yield* sql`alter table audit drop constraint refused`
      assert.deepStrictEqual(yield* sql`select 1 from sanctions where player_id = ${id}`, [])
      assert.strictEqual((yield* ask(`players/${id}/ban`, {})).status, 200)
      assert.lengthOf(yield* entriesOf(id), 1)
    })
  )

  it.effect("rejects every SQL statement that changes or deletes an entry", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = sql`select * from audit order by id`
      const before = yield* rows
      assert.isNotEmpty(before)
      const attempts = [
        sql`update audit set details = '{}'`,
        sql`update audit set at = now() - interval '401 days'`,
        sql`update audit set id = id || 'x'`,
        sql`delete from audit`,
        sql`delete from audit where at < now()`,
        sql`truncate audit`,
        sql`truncate audit cascade`,
        sql`insert into audit select * from audit on conflict (id) do update set actor_id = 'x'`,
        sql`merge into audit a using audit b on a.id = b.id when matched then delete`,
        sql`with deleted as (delete from audit returning *) select * from deleted`
      ]
      for (const attempt of attempts) assert.isTrue(Exit.isFailure(yield* Effect.exit(attempt)))
      assert.deepStrictEqual(yield* rows, before)
    })
  )
})

const root = fileURLToPath(new URL("../..", import.meta.url))

describe("the statements of the service", () => {
  it("inserts into the audit log in one place and never changes or deletes", () => {
    const statements = ["rpc", "sql", "entities", "src"].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
        .filter((path) => path.endsWith(".ts") && !path.startsWith("migrations"))
        .flatMap((path) => {
          const text = readFileSync(join(root, folder, path), "utf8")
          const writes = /\b(?:insert into|update|delete from|truncate|merge into)\s+audit\b[^`]*/gi
          return Array.from(
            text.matchAll(writes),
            ([statement]) => `${folder}/${path}: ${statement}`
          )
        })
    )
    assert.deepStrictEqual(statements, ["sql/audit.ts: insert into audit ${sql.insert(row)}"])
  })
})
