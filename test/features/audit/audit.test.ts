/** The audit log: atomic with its change, append-only and paged. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { HttpApiEndpoint } from "effect/http-api"
import { TestClock } from "effect/testing"
import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import { Unavailable } from "#rpc/errors/codes"
import { Operation } from "#rpc/operations"
import { AuditRepository } from "#sql/audit"
import { Audit, type AuditedEndpoint, type AuditEvent } from "#server/features/audit/service"
import { at, request } from "#testing/players"
import {
  addressOfNode,
  makeDeveloper,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"

const Node = nodeWith({ SVC_TRUSTED_PROXIES: "127.0.0.0/8" }).pipe(
  Layer.provideMerge(SharedDatabase.layer)
)

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const developer = yield* makeDeveloper
  const tenants = yield* makeTenantsOf(developer.developerId)
  const project = `${url}/v1/projects/${tenants.projectId}`
  const read = (query = "") => request(`${project}/audit${query}`, developer)
  const entries = (query = "") =>
    Effect.map(read(query), ({ body }) => {
      const found = at(body, "entries")
      return Array.isArray(found) ? found : []
    })
  return { url, developer, project, read, entries, ...tenants }
})

const system = { kind: "system", id: "system", name: "test" } as const

const event = (id: string): AuditEvent => ({
  action: "player.ban",
  target: { kind: "player", id }
})

const ban = HttpApiEndpoint.post("ban", "/ban").annotate(Operation, { audit: "player.ban" })

layer(Node)("the audit log", (it) => {
  it.effect("records actor, action, target, time and address of an audited change", () =>
    Effect.gen(function* () {
      const { developer, development, entries, project, url } = yield* setUp
      yield* TestClock.adjust("1 minute")
      const document = { version: 1, features: { saves: true } }
      yield* request(`${project}/environments/production/config`, {
        method: "PUT",
        headers: { ...developer.headers, "x-forwarded-for": "192.0.2.7" },
        body: document
      })
      yield* TestClock.adjust("1 minute")
      const { secretKey } = development
      const headers = { "x-svc-key": secretKey }
      yield* request(`${url}/v1/config`, { method: "PUT", headers, body: document })
      const [byKey, byDeveloper, ...others] = yield* entries()
      assert.deepStrictEqual(others, [])
      assert.match(String(at(byKey, "id")), /^aud_/)
      assert.match(String(at(byKey, "actor", "id")), /^key_/)
      assert.deepStrictEqual(byDeveloper, {
        id: at(byDeveloper, "id"),
        at: "1970-01-01T00:01:00.000Z",
        env: "production",
        actor: { kind: "developer", id: developer.developerId, name: "Dev" },
        address: "192.0.2.7",
        action: "config.push",
        target: { kind: "config", id: "1" },
        details: { changed: ["version", "features.saves"], changes: 2 }
      })
      assert.deepStrictEqual(byKey, {
        ...byDeveloper,
        id: at(byKey, "id"),
        at: "1970-01-01T00:02:00.000Z",
        env: "development",
        actor: { kind: "key", id: at(byKey, "actor", "id"), name: secretKey.slice(0, 8) },
        address: "127.0.0.1"
      })
    })
  )

  it.effect("adds no entry for rejected requests and requests without effect", () =>
    Effect.gen(function* () {
      const { developer, entries, project } = yield* setUp
      const push = (body: object) =>
        request(`${project}/environments/development/config`, {
          method: "PUT",
          headers: developer.headers,
          body
        })
      assert.strictEqual((yield* push({ version: 1 })).status, 200)
      assert.strictEqual((yield* push({ version: 1 })).status, 200)
      assert.strictEqual((yield* push({ version: 2 })).status, 400)
      assert.lengthOf(yield* entries(), 1)
    })
  )

  it.effect("keeps old and new secrets out of the audit log", () =>
    Effect.gen(function* () {
      const { developer, entries, project } = yield* setUp
      const path = `${project}/environments/development/integrity/webhook-secret`
      const before = yield* request(path, developer)
      const after = yield* request(path, { ...developer, method: "POST" })
      const read = yield* request(path, developer)
      assert.strictEqual(at(read.body, "secret"), at(after.body, "secret"))
      const found = yield* entries()
      assert.deepStrictEqual(
        found.map((entry) => at(entry, "action")),
        ["webhookSecret.rotate"]
      )
      for (const { body } of [before, after]) {
        assert.notInclude(JSON.stringify(found), String(at(body, "secret")))
      }
    })
  )

  it.effect("lists entries newest first, in pages and with filters", () =>
    Effect.gen(function* () {
      const audit = yield* Audit
      const { entries, projectId, read } = yield* setUp
      const record = (id: string, name?: "development" | "production") =>
        audit
          .record(name === undefined ? { projectId } : { projectId, name }, event(id))
          .pipe(Effect.provideService(CurrentActor, system), Effect.tap(TestClock.adjust(1)))
      for (const id of ["a", "b", "c"]) yield* record(id, "development")
      yield* record("d", "production")
      yield* record("e")
      const targets = (page: unknown) => {
        const found = at(page, "entries")
        return Array.isArray(found) ? found.map((it) => String(at(it, "target", "id"))) : []
      }
      const seen: Array<string> = []
      let query = "?limit=2"
      for (const _ of [1, 2, 3]) {
        const { body } = yield* read(query)
        seen.push(...targets(body))
        query = `?limit=2&before=${String(at(body, "nextBefore"))}`
      }
      assert.deepStrictEqual(seen, ["e", "d", "c", "b", "a"])
      assert.strictEqual(query, "?limit=2&before=null")
      const filtered = (filter: string) => Effect.map(read(filter), ({ body }) => targets(body))
      assert.deepStrictEqual(yield* filtered("?env=production"), ["d"])
      assert.deepStrictEqual(yield* filtered("?target=b&action=player.ban&actor=system"), ["b"])
      assert.deepStrictEqual(yield* filtered("?action=player.unban"), [])
      const cursors = ["", "null", "-1", "x", projectId].map((cursor) => `?before=${cursor}`)
      for (const wrong of ["?limit=0", "?limit=101", "?env=staging", ...cursors]) {
        assert.strictEqual((yield* read(wrong)).status, 400, wrong)
      }
      assert.lengthOf(yield* entries(), 5)
    })
  )

  it.effect("commits an entry and its change in one transaction", () =>
    Effect.gen(function* () {
      const audit = yield* Audit
      const sql = yield* SqlClient.SqlClient
      const { entries, projectId } = yield* setUp
      const rename = sql`update projects set name = 'renamed' where id = ${projectId}`
      const name = Effect.map(
        sql`select name from projects where id = ${projectId}`,
        ([row]) => row?.["name"]
      )
      const attempt = <E>(change: Effect.Effect<unknown, E>, id: string) =>
        audit
          .recordChange({ projectId }, change, () => event(id))
          .pipe(Effect.provideService(CurrentActor, system), Effect.exit)
      // Postgres rejects this text, so the entry cannot be written.
      assert.isTrue(Exit.isFailure(yield* attempt(rename, "\u0000")))
      assert.strictEqual(yield* name, "test")
      assert.isTrue(Exit.isFailure(yield* attempt(Effect.andThen(rename, Effect.fail("no")), "x")))
      assert.strictEqual(yield* name, "test")
      assert.deepStrictEqual(yield* entries(), [])
      assert.isTrue(Exit.isSuccess(yield* attempt(rename, "x")))
      assert.strictEqual(yield* name, "renamed")
      assert.lengthOf(yield* entries(), 1)
    })
  )

  it.effect("marks a change with an unknown outcome", () =>
    Effect.gen(function* () {
      const audit = yield* Audit
      const { development, entries, projectId } = yield* setUp
      const { environmentId, name } = development
      const follow = <E>(change: Effect.Effect<unknown, E>, id: string) =>
        audit
          .recordOperationAfter(ban, change, { target: { kind: "player", id } })
          .pipe(
            Effect.provideService(CurrentActor, system),
            Effect.provideService(CurrentEnvironment, { environmentId, name, projectId }),
            Effect.exit
          )
      yield* follow(Effect.fail("refused"), "refused")
      yield* follow(Effect.die("lost"), "lost")
      yield* follow(Effect.fail(new Unavailable()), "unanswered")
      yield* follow(Effect.void, "made")
      const found = yield* entries()
      assert.sameDeepMembers(
        found.map((entry) => [at(entry, "target", "id"), at(entry, "details")]),
        [
          ["made", {}],
          ["lost", { outcome: "unknown" }],
          ["unanswered", { outcome: "unknown" }]
        ]
      )
    })
  )

  it.effect("names a change as its endpoint does, and dies for an endpoint that names none", () =>
    Effect.gen(function* () {
      const audit = yield* Audit
      const { development, entries, projectId } = yield* setUp
      const { environmentId, name } = development
      const change = (endpoint: AuditedEndpoint, id?: string) =>
        audit
          .recordOperation(endpoint, Effect.succeed(id), (target) =>
            target === undefined ? undefined : { target: { kind: "player", id: target } }
          )
          .pipe(
            Effect.provideService(CurrentActor, system),
            Effect.provideService(CurrentEnvironment, { environmentId, name, projectId }),
            Effect.exit
          )
      yield* change(ban, "one")
      yield* change(ban)
      const nameless = HttpApiEndpoint.post("nameless", "/nameless")
      assert.isTrue(Exit.hasDies(yield* change(nameless, "two")))
      assert.deepStrictEqual(
        (yield* entries()).map((entry) => [at(entry, "action"), at(entry, "target", "id")]),
        [["player.ban", "one"]]
      )
    })
  )

  it.effect("keeps entries unchangeable in the database for 400 days", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* AuditRepository
      const { entries, projectId } = yield* setUp
      const insert = (id: string, age: string) => sql`
        insert into audit (id, at, project_id, actor_kind, actor_id, actor_name, action,
          target_kind, target_id, details)
        values (${`${projectId}${id}`}, now() - ${age}::text::interval, ${projectId}, 'system',
          'system', 'test', 'player.ban', 'player', ${id}, '{}')`
      yield* insert("new", "399 days")
      yield* insert("old", "401 days")
      const mine = sql`project_id = ${projectId}`
      for (const statement of [
        sql`update audit set actor_name = 'nobody' where ${mine}`,
        sql`delete from audit where ${mine}`,
        sql`truncate audit`
      ]) {
        assert.isTrue(Exit.isFailure(yield* Effect.exit(statement)))
      }
      assert.lengthOf(yield* entries(), 2)
      const [row] = yield* sql<{ now: string }>`select now()::text as now`
      const now = DateTime.makeUnsafe(String(row?.now))
      yield* rows.sweep(DateTime.subtract(now, { days: 400 }))
      assert.deepStrictEqual(
        (yield* entries()).map((entry) => at(entry, "target", "id")),
        ["new"]
      )
      assert.isTrue(Exit.isFailure(yield* Effect.exit(rows.sweep(now))))
    })
  )

  it.effect("shows the audit log to the developers of its project only", () =>
    Effect.gen(function* () {
      const { project } = yield* setUp
      const stranger = yield* makeDeveloper
      assert.strictEqual((yield* request(`${project}/audit`, stranger)).status, 404)
      assert.strictEqual((yield* request(`${project}/audit`)).status, 401)
    })
  )
})
