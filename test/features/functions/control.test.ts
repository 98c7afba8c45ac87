/** Functions over HTTP: the switch, limits, deployments, secrets, databases and deletion. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { FunctionsQueues, FunctionsSource } from "#server/features/functions/control-plane"
import { at, request } from "#testing/players"
import {
  base64,
  call,
  code,
  deploy,
  deploymentOf,
  enable,
  enableWith
} from "../../support/function-calls.ts"
import { FakeRuntime } from "../../support/function-runtime.ts"
import { codeOf } from "../../support/moderation-calls.ts"
import {
  addressOfNode,
  makeDeveloper,
  makeTenants,
  makeTenantsOf,
  nodeWith,
  SharedDatabase,
  type Tenant
} from "../../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production, projectId } = yield* makeTenants
  return { target: { url, ...development }, production: { url, ...production }, projectId }
})

const message = { contentType: "json" as const, body: new Uint8Array([49]), delaySeconds: 0 }

/** What the runtime was asked for an environment. */
const callKinds = ({ environmentId: of }: Pick<Tenant, "environmentId">) =>
  Effect.map(FakeRuntime, ({ calls }) =>
    calls.flatMap(({ environmentId, kind }) => (environmentId === of ? [kind] : []))
  )

const execute = promisify(execFile)
const operator = fileURLToPath(new URL("../../../src/server/operator/main.ts", import.meta.url))

layer(Node, { timeout: "60 seconds" })("functions", (it) => {
  it.effect("keeps functions off until they are enabled, and code and data while disabled", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const before = yield* call(target, "GET")
      assert.deepStrictEqual(
        [at(before.body, "enabled"), at(before.body, "deployed"), at(before.body, "version")],
        [false, false, null]
      )
      assert.deepStrictEqual(at(before.body, "limits"), {
        cpuMs: 50,
        cpuMsMax: 30_000,
        subRequests: 50
      })
      const listed = Effect.gen(function* () {
        const headers = { "x-svc-key": target.secretKey }
        const { body } = yield* request(`${target.url}/v1/admin/features`, { headers })
        const features = Array.from(Object(at(body, "features")))
        return features.find((feature) => at(feature, "key") === "functions")
      })
      const configPath = "functions/enable"
      assert.deepInclude(yield* listed, {
        source: "endpoint",
        configPath,
        enabled: false,
        offered: true
      })
      const early = yield* call(target, "POST", "/deployments", deploymentOf(code))
      assert.deepStrictEqual([early.status, codeOf(early)], [403, "feature_disabled"])
      assert.deepStrictEqual(at(early.body, "error", "details"), {
        feature: "functions",
        configPath
      })
      assert.deepInclude(yield* enableWith(target, { cpuMs: 200 }), {
        enabled: true,
        suspended: false,
        suspendedReason: null,
        limits: { cpuMs: 200, cpuMsMax: 30_000, subRequests: 50 }
      })
      assert.deepInclude(yield* listed, { enabled: true, offered: true })
      yield* deploy(target, { message: "First", bindings: [{ name: "JOBS", type: "queue" }] })
      yield* call(target, "PUT", "/secrets/A", { value: "x" })
      yield* (yield* FunctionsQueues).send(target.environmentId, "JOBS", [message])
      const off = yield* call(target, "POST", "/disable")
      assert.deepInclude(off.body, { enabled: false, deployed: true, version: 1 })
      const source = yield* FunctionsSource
      assert.deepStrictEqual(yield* source.load(target.environmentId), { kind: "absent" })
      assert.deepInclude(yield* enable(target), { version: 1, deployed: true })
      assert.strictEqual((yield* source.load(target.environmentId)).kind, "live")
      const kept = yield* call(target, "GET")
      assert.deepStrictEqual(at(kept.body, "secrets"), ["A"])
      const queues = [{ binding: "JOBS", messages: 1 }]
      assert.deepStrictEqual(at(kept.body, "resources", "queues"), queues)
      assert.notInclude(yield* callKinds(target), "purge")
    })
  )

  it.effect(
    "refuses a function deployment on a full disk, and still activates an earlier version",
    () =>
      Effect.gen(function* () {
        const { target } = yield* setUp
        const runtime = yield* FakeRuntime
        yield* enable(target)
        yield* deploy(target)
        yield* deploy(target)
        runtime.isDiskFull = true
        const refused = yield* call(target, "POST", "/deployments", deploymentOf(code))
        assert.deepStrictEqual([refused.status, codeOf(refused)], [503, "unavailable"])
        assert.strictEqual(at(refused.body, "error", "message"), "The disk is full.")
        assert.deepInclude((yield* call(target, "GET")).body, { version: 2 })
        const back = yield* call(target, "POST", "/deployments/1/activate")
        assert.strictEqual(back.status, 200)
        runtime.isDiskFull = false
        yield* deploy(target)
      })
  )

  it.effect("refuses function limits outside their range, and changes one at a time", () =>
    Effect.gen(function* () {
      const { projectId, target } = yield* setUp
      yield* enable(target)
      for (const wrong of [
        { cpuMs: 0 },
        { cpuMs: 30_001 },
        { subRequests: 1001 },
        { cpuMs: 1.5 }
      ]) {
        const answer = yield* call(target, "PUT", "/limits", wrong)
        assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "invalid_request"])
      }
      const changed = yield* call(target, "PUT", "/limits", { subRequests: 0 })
      assert.deepStrictEqual(at(changed.body, "limits"), {
        cpuMs: 50,
        cpuMsMax: 30_000,
        subRequests: 0
      })
      const sql = yield* SqlClient.SqlClient
      const [entry] = yield* sql`
        select details from audit where action = 'functions.limits' and project_id = ${projectId}`
      const details: unknown = JSON.parse(String(at(entry, "details")))
      assert.deepStrictEqual(details, { cpuMs: 50, subRequests: { before: 50, after: 0 } })
      const both = yield* call(target, "PUT", "/limits", { cpuMs: 30_000, subRequests: 1000 })
      assert.deepStrictEqual(at(both.body, "limits"), {
        cpuMs: 30_000,
        cpuMsMax: 30_000,
        subRequests: 1000
      })
    })
  )

  it.effect("keeps the live version of a function when new code does not start", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      yield* enable(target)
      yield* deploy(target)
      const broken = yield* call(target, "POST", "/deployments", deploymentOf("syntax error"))
      assert.deepStrictEqual([broken.status, codeOf(broken)], [400, "function_invalid"])
      assert.deepStrictEqual(at(broken.body, "error", "details"), { file: "main.js", line: 1 })
      assert.deepInclude((yield* call(target, "GET")).body, { version: 1 })
    })
  )

  it.effect(
    "takes a function deployment of ten megabytes, and gives the runtime the same bytes",
    () =>
      Effect.gen(function* () {
        const { target } = yield* setUp
        const source = yield* FunctionsSource
        yield* enable(target)
        const bytes = Buffer.alloc(10 * 1024 * 1024 - code.length, "0123456789abcdef\n")
        yield* deploy(target, {
          modules: [
            { name: "main.js", type: "esm", content: base64(code) },
            { name: "data/blob.bin", type: "data", content: bytes.toString("base64") }
          ]
        })
        const state = yield* source.load(target.environmentId)
        assert(state.kind === "live")
        const blob = state.program.modules.find(({ name }) => name === "data/blob.bin")
        assert.isTrue(bytes.equals(blob?.content ?? new Uint8Array()))
      })
  )

  it.effect(
    "stores function secrets encrypted, and hands the runtime only those that are bound",
    () =>
      Effect.gen(function* () {
        const { production, target } = yield* setUp
        const source = yield* FunctionsSource
        const sql = yield* SqlClient.SqlClient
        yield* enable(target)
        const early = yield* deploy(target, { bindings: [{ name: "API_KEY", type: "secret" }] })
        assert.deepStrictEqual(at(early, "unsetSecrets"), ["API_KEY"])
        const put = yield* call(target, "PUT", "/secrets/API_KEY", { value: "top secret" })
        assert.deepStrictEqual([put.status, put.body], [200, { name: "API_KEY" }])
        yield* call(target, "PUT", "/secrets/OTHER", { value: "not bound" })
        const listed = yield* call(target, "GET", "/secrets")
        assert.deepStrictEqual(at(listed.body, "secrets", 0, "name"), "API_KEY")
        assert.notInclude(JSON.stringify(listed.body), "top secret")
        const rows = yield* sql`select * from function_secrets`
        assert.notInclude(JSON.stringify(rows), "top secret")
        yield* deploy(target, { bindings: [{ name: "API_KEY", type: "secret" }] })
        const state = yield* source.load(target.environmentId)
        assert(state.kind === "live")
        assert.deepStrictEqual(Object.keys(state.program.secrets), ["API_KEY"])
        const value = state.program.secrets["API_KEY"]
        assert.strictEqual(value === undefined ? "" : Redacted.value(value), "top secret")
        const wrong: ReadonlyArray<readonly [string, string]> = [
          ["lower", "x"],
          ["SVC_KEY", "x"],
          ["A".repeat(65), "x"],
          ["A", "x".repeat(24 * 1024 + 1)],
          ["A", "x".repeat(25_000)],
          ["A", ""],
          ["A", "\u0000"]
        ]
        for (const [name, text] of wrong) {
          const answer = yield* call(target, "PUT", `/secrets/${name}`, { value: text })
          assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "invalid_request"], name)
        }
        const kept = yield* call(target, "PUT", "/secrets/A", { value: "x".repeat(24 * 1024) })
        assert.strictEqual(kept.status, 200)
        yield* enable(production)
        assert.strictEqual((yield* call(production, "DELETE", "/secrets/API_KEY")).status, 404)
        assert.strictEqual((yield* call(target, "DELETE", "/secrets/API_KEY")).status, 200)
        assert.strictEqual((yield* call(target, "DELETE", "/secrets/API_KEY")).status, 404)
        assert.deepStrictEqual(at((yield* call(target, "GET")).body, "secrets"), ["A", "OTHER"])
      })
  )

  it.effect("refuses a function secret beyond a hundred", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      yield* enable(target)
      yield* Effect.forEach(
        Array.from({ length: 100 }, (_, i) => i),
        (i) => call(target, "PUT", `/secrets/S${i}`, { value: "x" }),
        { concurrency: 8 }
      )
      const beyond = yield* call(target, "PUT", "/secrets/ONE_MORE", { value: "x" })
      assert.deepStrictEqual([beyond.status, codeOf(beyond)], [400, "invalid_request"])
      assert.strictEqual((yield* call(target, "PUT", "/secrets/S7", { value: "y" })).status, 200)
    })
  )

  it.effect(
    "runs SQL statements and migrations on databases of the live function version only",
    () =>
      Effect.gen(function* () {
        const { target } = yield* setUp
        yield* enable(target)
        const query = (binding: string, sql: string) =>
          call(target, "POST", `/db/${binding}/query`, { sql })
        assert.strictEqual((yield* query("DB", "select 1")).status, 404)
        yield* deploy(target, {
          bindings: [
            { name: "DB", type: "db" },
            { name: "KV", type: "kv" }
          ]
        })
        assert.strictEqual((yield* query("KV", "select 1")).status, 404)
        assert.deepStrictEqual((yield* query("DB", "select 1")).body, {
          columns: ["a"],
          rows: [[1]],
          rowsAffected: 0,
          lastInsertId: null
        })
        const wrong = yield* query("DB", "selec")
        assert.deepStrictEqual([wrong.status, codeOf(wrong)], [400, "sql_error"])
        assert.strictEqual((yield* query("DB", "")).status, 400)
        const several = yield* query("DB", "select 1; select 2")
        assert.deepStrictEqual([several.status, codeOf(several)], [400, "invalid_request"])
        assert.strictEqual((yield* query("DB", `select '${"a".repeat(99_991)}'`)).status, 200)
        assert.strictEqual((yield* query("DB", `select '${"a".repeat(99_992)}'`)).status, 400)
        const half = { sql: "select ?", params: ["\uD83D"] }
        assert.strictEqual((yield* call(target, "POST", "/db/DB/query", half)).status, 400)
        assert.strictEqual((yield* query("DB", "select 1;")).status, 200)
        const migrations = [{ name: "0001_init", sql: "create table t (a)" }]
        const done = yield* call(target, "POST", "/db/DB/migrate", { migrations })
        assert.deepStrictEqual(done.body, { applied: ["0001_init"], skipped: [], failed: null })
        const twice = yield* call(target, "POST", "/db/DB/migrate", {
          migrations: [...migrations, ...migrations]
        })
        assert.strictEqual(twice.status, 400)
      })
  )

  it.effect("deletes the code of functions, and with purge also their data and secrets", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      yield* enable(target)
      yield* call(target, "PUT", "/secrets/A", { value: "x" })
      yield* deploy(target, { crons: ["* * * * *"] })
      const removed = yield* call(target, "DELETE")
      assert.deepStrictEqual(removed.body, { deleted: true, purged: false })
      assert.deepInclude((yield* call(target, "GET")).body, {
        enabled: true,
        deployed: false,
        version: null,
        crons: [],
        secrets: ["A"]
      })
      assert.deepStrictEqual(
        at((yield* call(target, "GET", "/deployments")).body, "deployments"),
        []
      )
      assert.deepInclude(yield* deploy(target), { version: 2 })
      const purged = yield* call(target, "DELETE", "?purge=true")
      assert.deepStrictEqual(purged.body, { deleted: true, purged: true })
      assert.deepStrictEqual(at((yield* call(target, "GET")).body, "secrets"), [])
      assert.include(yield* callKinds(target), "purge")
    })
  )

  it.effect("keeps functions suspended for abuse until an operator resumes them", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const source = yield* FunctionsSource
      yield* enable(target)
      yield* deploy(target, { bindings: [{ name: "DB", type: "db" }] })
      yield* source.suspend(target.environmentId)
      assert.deepInclude((yield* call(target, "GET")).body, {
        suspended: true,
        suspendedReason: "abuse"
      })
      assert.deepStrictEqual(yield* source.load(target.environmentId), { kind: "suspended" })
      const query = yield* call(target, "POST", "/db/DB/query", { sql: "select 1" })
      assert.deepStrictEqual([query.status, codeOf(query)], [503, "functions_suspended"])
      const DATABASE_URL = Redacted.value(yield* SharedDatabase)
      const command = [operator, "functions", "resume", target.environmentId]
      const { stdout } = yield* Effect.promise(() =>
        execute(process.execPath, command, { env: { DATABASE_URL } })
      )
      assert.include(stdout, "is resumed")
      assert.deepInclude((yield* call(target, "GET")).body, {
        suspended: false,
        suspendedReason: null
      })
      assert.strictEqual((yield* source.load(target.environmentId)).kind, "live")
      const again = yield* call(target, "POST", "/db/DB/query", { sql: "select 1" })
      assert.strictEqual(again.status, 200)
    })
  )

  it.effect(
    "lets a developer of the project deploy functions, and answers 404 to other developers",
    () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const owner = yield* makeDeveloper
        const stranger = yield* makeDeveloper
        const { projectId } = yield* makeTenantsOf(owner.developerId)
        const base = `${url}/v1/projects/${projectId}/environments/production/functions`
        const on = yield* request(`${base}/enable`, { headers: owner.headers, body: {} })
        assert.deepInclude(on.body, { enabled: true })
        const made = yield* request(`${base}/deployments`, {
          headers: owner.headers,
          body: deploymentOf(code)
        })
        assert.strictEqual(made.status, 201)
        assert.strictEqual((yield* request(base, { headers: stranger.headers })).status, 404)
        const foreign = yield* request(`${base}/deployments`, {
          headers: stranger.headers,
          body: deploymentOf(code)
        })
        assert.strictEqual(foreign.status, 404)
      })
  )
})
