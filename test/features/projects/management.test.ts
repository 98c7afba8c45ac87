/** Project management by members: creation, renaming, keys, limits and access. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { HttpServer } from "effect/http"
import { SqlClient } from "effect/sql"
import { projectLimits } from "#rpc/projects/limits"
import { Usage } from "#server/platform/usage"
import { at, request } from "#testing/players"
import { ask, codeOf } from "../../support/developer-requests.ts"
import {
  buildAnother,
  addressOfNode,
  makeDeveloper,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))
const RateLimited = nodeWith({ SVC_THROTTLES: "on" }).pipe(Layer.provideMerge(SharedDatabase.layer))

/** Creates a developer with a project over HTTP. */
const setUp = Effect.fnUntraced(function* (name = "Sky Race") {
  const developer = yield* makeDeveloper
  const { body } = yield* ask(developer, "POST", "/v1/projects", { name })
  const id = String(body.project.id)
  const keyOf = (env: string, kind: "publishableKey" | "secretKey") =>
    String(at(body, "plainKeys", env, kind))
  return { developer, id, path: `/v1/projects/${id}`, project: body.project, keyOf }
})

const opens = (key: string, url?: string) =>
  Effect.gen(function* () {
    const here = url ?? (yield* addressOfNode)
    return codeOf(
      yield* request(`${here}/v1/gamedata/definitions`, { headers: { "x-svc-key": key } })
    )
  })

layer(Node)("projects", (it) => {
  it.effect("creates a project with two environments and shows its secret keys once", () =>
    Effect.gen(function* () {
      const { developer, keyOf, path, project } = yield* setUp("  Sky Race ")
      assert.strictEqual(project.name, "Sky Race")
      assert.match(String(project.slug), /^sky-race-[a-z0-9]{4}$/)
      const names = [0, 1].map((i) => at(project, "environments", i, "name"))
      assert.deepStrictEqual(names, ["development", "production"])
      for (const env of ["development", "production"]) {
        assert.strictEqual(yield* opens(keyOf(env, "publishableKey")), "ok")
      }
      const again = yield* ask(developer, "GET", path)
      assert.deepStrictEqual(at(again.body, "project", "id"), at(project, "id"))
      const text = JSON.stringify(again.body)
      assert.include(text, keyOf("development", "publishableKey"))
      assert.notInclude(text, keyOf("development", "secretKey"))
      const listed = yield* ask(developer, "GET", "/v1/projects")
      assert.deepStrictEqual(listed.body.projects[0]?.id, project.id)
      assert.isUndefined(listed.body.projects[1])
    })
  )

  it.effect(
    "accepts names of 1 to 80 characters and rejects names of the service or its staff",
    () =>
      Effect.gen(function* () {
        const { developer, path } = yield* setUp()
        const reserved = ["Svc", "S.V.C", "svc studio", "$vc", "Player Backend", "ADMIN", "Adm1n"]
        const others = ["Official Support", "the support team", "S\u00fapport", "staff"]
        const disguised = ["official svc team", "Game by svc", "\u0455v\u0441", "\u0430dmin"]
        for (const name of [...reserved, ...others, ...disguised]) {
          const made = yield* ask(developer, "POST", "/v1/projects", { name })
          assert.strictEqual(codeOf(made), "name_reserved", name)
          assert.strictEqual(made.status, 400)
          assert.strictEqual(
            codeOf(yield* ask(developer, "PATCH", path, { name })),
            "name_reserved"
          )
        }
        for (const name of [
          "",
          "  ",
          "a".repeat(81),
          "a\u0000b",
          "\ud800",
          "\u200b",
          "a\u202eb",
          7,
          undefined
        ]) {
          const made = yield* ask(developer, "POST", "/v1/projects", { name })
          assert.strictEqual(codeOf(made), "invalid_request", String(name))
        }
        for (const name of [
          "Admin Tycoon",
          "Support Group Simulator",
          "a".repeat(80),
          "東京",
          "!"
        ]) {
          assert.strictEqual(codeOf(yield* ask(developer, "POST", "/v1/projects", { name })), "ok")
        }
      })
  )

  it.effect(
    "gives a project the slug that its developer chose, and refuses one that is taken",
    () =>
      Effect.gen(function* () {
        const { developer } = yield* setUp("First")
        const create = (slug: string, name = "\u661f\u306e\u65c5") =>
          ask(developer, "POST", "/v1/projects", { name, slug })
        const made = yield* create("hoshi-no-tabi")
        assert.strictEqual(made.body.project.slug, "hoshi-no-tabi")
        for (const slug of [
          "hoshi-no-tabi",
          "www",
          "ab",
          "-ab",
          "a--b",
          "Abc",
          "a".repeat(41),
          "\u661f\u661f\u661f"
        ]) {
          const refused = yield* create(slug)
          assert.deepStrictEqual([refused.status, codeOf(refused)], [400, "invalid_request"], slug)
          assert.strictEqual(at(refused.body, "error", "details", "issues", 0, "path"), "slug")
        }
        assert.strictEqual(codeOf(yield* create("admin")), "name_reserved")
      })
  )

  it.effect("renames a project, returns the previous name and keeps the slug", () =>
    Effect.gen(function* () {
      const { developer, path, project } = yield* setUp("One")
      const renamed = yield* ask(developer, "PATCH", path, { name: " Two " })
      assert.strictEqual(at(renamed.body, "previousName"), "One")
      assert.strictEqual(at(renamed.body, "changed"), true)
      assert.strictEqual(at(renamed.body, "project", "name"), "Two")
      assert.strictEqual(at(renamed.body, "project", "slug"), at(project, "slug"))
      const same = yield* ask(developer, "PATCH", path, { name: "Two" })
      assert.strictEqual(at(same.body, "previousName"), "Two")
      assert.strictEqual(at(same.body, "changed"), false)
    })
  )

  it.effect("answers 404 to developers who are not members", () =>
    Effect.gen(function* () {
      const { developer, path, project } = yield* setUp()
      const stranger = yield* makeDeveloper
      const key = String(project.environments[0]?.keys[0]?.id)
      const env = `${path}/environments/development`
      for (const [method, where, body] of [
        ["GET", path, undefined],
        ["PATCH", path, { name: "Mine" }],
        ["DELETE", path, undefined],
        ["DELETE", `${path}/keys/${key}`, undefined],
        ["POST", `${env}/keys`, { kind: "secret" }],
        ["GET", `${env}/overview`, undefined],
        ["GET", `${env}/players`, undefined],
        ["GET", `${env}/players/pl_00000000000000000000000000`, undefined],
        ["GET", `${env}/realtime`, undefined]
      ] as const) {
        const answer = yield* ask(stranger, method, where, body)
        assert.strictEqual(answer.status, 404, `${method} ${where}`)
        assert.strictEqual(codeOf(answer), "not_found", `${method} ${where}`)
      }
      const none = { projects: [], deleted: [] }
      assert.deepStrictEqual((yield* ask(stranger, "GET", "/v1/projects")).body, none)
      assert.strictEqual(codeOf(yield* ask(developer, "GET", path)), "ok")
      const other = yield* setUp()
      const foreign = yield* ask(other.developer, "DELETE", `${other.path}/keys/${key}`)
      assert.strictEqual(codeOf(foreign), "not_found")
      for (const name of ["key_x", "%00", "key_00000000000000000000000000"]) {
        const unknown = yield* ask(developer, "DELETE", `${path}/keys/${name}`)
        assert.strictEqual(codeOf(unknown), "not_found", name)
      }
      yield* ask(developer, "DELETE", path)
      for (const who of [stranger, other.developer]) {
        assert.strictEqual(codeOf(yield* ask(who, "POST", `${path}/restore`)), "not_found")
      }
      assert.deepStrictEqual((yield* ask(stranger, "GET", "/v1/projects")).body, none)
      assert.strictEqual(codeOf(yield* ask(developer, "POST", `${path}/restore`)), "ok")
    })
  )

  it.effect(
    "limits the projects of a developer and the keys of an environment",
    () =>
      Effect.gen(function* () {
        const { developer, path } = yield* setUp()
        const sql = yield* SqlClient.SqlClient
        const { developerId } = developer
        yield* sql`insert into projects (id, name, slug, created_at)
        select 'prj_' || lpad(n::text, 26, '0'), 'n', ${developerId} || n, now()
        from generate_series(2, ${projectLimits.perDeveloper}::int) n`
        yield* sql`insert into project_members (project_id, developer_id, created_at)
        select id, ${developerId}, now() from projects where name = 'n'`
        const more = yield* ask(developer, "POST", "/v1/projects", { name: "More" })
        assert.strictEqual(codeOf(more), "too_many_projects")
        assert.deepStrictEqual(at(more.body, "error", "details"), {
          limit: projectLimits.perDeveloper
        })
        const keys = `${path}/environments/production/keys`
        const made = yield* Effect.forEach(
          Array.from({ length: projectLimits.keysPerEnvironment }),
          () => Effect.map(ask(developer, "POST", keys, { kind: "secret" }), codeOf),
          { concurrency: 4 }
        )
        const refused = made.filter((code) => code !== "ok")
        assert.deepStrictEqual(refused, ["too_many_keys", "too_many_keys"])
      }),
    { tags: "long" }
  )
})

layer(Node)("keys of a project", (it) => {
  it.effect(
    "activates a new key at once and disables a revoked one on all nodes within a second",
    () =>
      Effect.gen(function* () {
        const { developer, path } = yield* setUp()
        const other = yield* buildAnother(nodeWith())
        const { address } = Context.get(other, HttpServer.HttpServer)
        const there = `http://127.0.0.1:${"port" in address ? address.port : 0}`
        const kind = { kind: "publishable" }
        const made = yield* ask(developer, "POST", `${path}/environments/development/keys`, kind)
        const plain = String(at(made.body, "plain"))
        const id = String(at(made.body, "key", "id"))
        assert.strictEqual(at(made.body, "key", "prefix"), plain.slice(0, 8))
        assert.strictEqual(yield* opens(plain), "ok")
        assert.strictEqual(yield* opens(plain, there), "ok")
        const revoked = yield* ask(developer, "DELETE", `${path}/keys/${id}`)
        assert.strictEqual(at(revoked.body, "key", "id"), id)
        assert.strictEqual(at(revoked.body, "key", "revokedAt"), "1970-01-01T00:00:00.000Z")
        assert.strictEqual(yield* opens(plain), "invalid_key")
        yield* opens(plain, there).pipe(
          Effect.repeat({ until: (code) => code === "invalid_key" }),
          TestClock.withLive,
          Effect.timeout("1 second")
        )
        const again = yield* ask(developer, "DELETE", `${path}/keys/${id}`)
        assert.deepStrictEqual(again.body, revoked.body)
        assert.notInclude(JSON.stringify((yield* ask(developer, "GET", path)).body), id)
      })
  )

  it.effect("allows revoking the last key of a kind and creating another", () =>
    Effect.gen(function* () {
      const { developer, keyOf, path, project } = yield* setUp()
      for (const key of [0, 1]) {
        const id = String(at(project, "environments", 0, "keys", key, "id"))
        assert.strictEqual(codeOf(yield* ask(developer, "DELETE", `${path}/keys/${id}`)), "ok")
      }
      const left = yield* ask(developer, "GET", path)
      assert.deepStrictEqual(at(left.body, "project", "environments", 0, "keys"), [])
      assert.strictEqual(yield* opens(keyOf("development", "publishableKey")), "invalid_key")
      assert.strictEqual(yield* opens(keyOf("production", "publishableKey")), "ok")
      const keys = `${path}/environments/development/keys`
      const made = yield* ask(developer, "POST", keys, { kind: "publishable" })
      assert.strictEqual(yield* opens(String(at(made.body, "plain"))), "ok")
      const wrong = yield* ask(developer, "POST", keys, { kind: "root" })
      assert.strictEqual(codeOf(wrong), "invalid_request")
    })
  )

  it.effect("reports when a key was last used", () =>
    Effect.gen(function* () {
      const { developer, keyOf, path } = yield* setUp()
      const usage = yield* Usage
      const used = Effect.map(ask(developer, "GET", path), ({ body }) =>
        [0, 1].map((key) => at(body, "project", "environments", 0, "keys", key, "lastUsedAt"))
      )
      assert.deepStrictEqual(yield* used, [null, null])
      yield* opens(keyOf("development", "publishableKey"))
      yield* usage.flush
      const [publishable, secret] = yield* used
      assert.isString(publishable)
      assert.isNull(secret)
    })
  )
})

layer(RateLimited)("rate limits of projects", (it) => {
  it.effect("refuses the 21st rename of a project within an hour", () =>
    Effect.gen(function* () {
      const { developer, path } = yield* setUp()
      const rename = (name: string) => ask(developer, "PATCH", path, { name })
      for (let i = 0; i < 20; i++) assert.strictEqual(codeOf(yield* rename(`Name ${i}`)), "ok")
      const refused = yield* rename("One more")
      assert.strictEqual(refused.status, 429)
      assert.strictEqual(codeOf(refused), "rate_limited")
      assert.closeTo(Number(refused.headers.get("retry-after")), 3600, 60)
      // A rename to the current name does not count.
      assert.strictEqual(codeOf(yield* rename("Name 19")), "ok")
      const other = yield* setUp()
      const renamed = yield* ask(other.developer, "PATCH", other.path, { name: "Other" })
      assert.strictEqual(codeOf(renamed), "ok")
    })
  )
})
