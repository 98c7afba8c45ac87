/** Versions of the code of Functions: deployments, what they refuse, and earlier versions. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at } from "#testing/players"
import { base64, call, code, deploy, deploymentOf, enable } from "../../support/function-calls.ts"
import { FakeRuntime } from "../../support/function-runtime.ts"
import { codeOf } from "../../support/moderation-calls.ts"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  return { target: { url, ...development } }
})

const issues = (body: unknown): unknown => at(body, "error", "details", "issues")

const module = (name: string, type = "esm", content = base64(code)) => ({
  name,
  type,
  content
})
const withModules = (...modules: ReadonlyArray<object>) => ({
  modules: [module("main.js"), ...modules]
})
const cases: ReadonlyArray<readonly [object, string]> = [
  [{ mainModule: "other.js" }, "mainModule"],
  [withModules(module("../up.js")), "modules[1].name"],
  [withModules(module("/etc/passwd")), "modules[1].name"],
  [withModules(module("a//b.js")), "modules[1].name"],
  [withModules(module("a\\b.js")), "modules[1].name"],
  [withModules(module("node:fs")), "modules[1].name"],
  [withModules(module("__svc_entry.mjs")), "modules[1].name"],
  [withModules(module("")), "modules[1].name"],
  [withModules(module("x".repeat(257))), "modules[1].name"],
  [withModules(module("MAIN.js")), "modules[1].name"],
  [withModules(module("a.js", "esm", "not base64!")), "modules[1].content"],
  [withModules(module("a.js", "esm", "/w==")), "modules[1].content"],
  [withModules(module("a.json", "json", base64("{"))), "modules[1].content"],
  [withModules(module("a.js", "php")), "modules[1].type"],
  [{ modules: Array.from({ length: 501 }, (_, i) => module(`${i}.js`)) }, "modules"],
  [{ modules: [] }, "modules"],
  [{ bindings: [{ name: "svc", type: "kv" }] }, "bindings[0].name"],
  [{ bindings: [{ name: "__proto__", type: "kv" }] }, "bindings[0].name"],
  [{ bindings: [{ name: "constructor", type: "kv" }] }, "bindings[0].name"],
  [{ bindings: [{ name: "SVC_X", type: "kv" }] }, "bindings[0].name"],
  [{ bindings: [{ name: "lower", type: "secret" }] }, "bindings[0].name"],
  [{ bindings: [{ name: "A", type: "durableObject" }] }, "bindings[0].class"],
  [{ bindings: [{ name: "A", type: "kv", class: "B" }] }, "bindings[0].class"],
  [
    {
      bindings: [
        { name: "A", type: "kv" },
        { name: "A", type: "db" }
      ]
    },
    "bindings[1].name"
  ],
  [{ bindings: [{ name: "A", type: "kv" }], vars: { A: "b" } }, "vars.A"],
  [{ vars: { A: "x".repeat(5 * 1024 + 1) } }, "vars.A"],
  [{ vars: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`V${i}`, ""])) }, "vars"],
  [{ crons: ["* * * *"] }, "crons[0]"],
  [{ crons: ["61 * * * *"] }, "crons[0]"],
  [{ crons: ["0 0 31 2 *"] }, "crons[0]"],
  [{ crons: ["* * * * * *"] }, "crons[0]"],
  [{ crons: ["0 0 * * *", "0 0 * * *"] }, "crons[1]"],
  [{ crons: Array.from({ length: 21 }, (_, i) => `${i} * * * *`) }, "crons"],
  [{ compatibilityDate: "tomorrow" }, "compatibilityDate"],
  [{ compatibilityDate: "2026-02-31" }, "compatibilityDate"],
  [{ message: "x".repeat(501) }, "message"]
]
layer(Node, { timeout: "60 seconds" })("versions of functions", (it) => {
  it.effect("deploys immutable versions of functions, and makes an earlier one live again", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const { calls } = yield* FakeRuntime
      yield* enable(target)
      const bindings = [
        { name: "DB", type: "db" },
        { name: "ROOM", type: "durableObject", class: "Room" },
        { name: "JOBS", type: "queue" },
        { name: "API_KEY", type: "secret" }
      ]
      const first = yield* deploy(target, { bindings, crons: ["*/5 * * * *"], vars: { A: "b" } })
      assert.deepInclude(first, {
        version: 1,
        live: true,
        message: null,
        modules: [{ name: "main.js", sizeBytes: code.length }],
        crons: ["*/5 * * * *"]
      })
      assert.match(`${at(first, "url")}`, /^https:\/\/play\.example\.com\/fn\/test.*--dev$/)
      yield* deploy(target, { message: "Second" }, `${code} // two`)
      const status = yield* call(target, "GET")
      assert.deepInclude(status.body, { version: 2, crons: [], durableObjects: [] })
      const page = yield* call(target, "GET", "/deployments?limit=1")
      assert.strictEqual(at(page.body, "deployments", 0, "version"), 2)
      assert.strictEqual(at(page.body, "nextCursor"), "2")
      const next = yield* call(target, "GET", "/deployments?limit=1&cursor=2")
      assert.deepInclude(at(next.body, "deployments", 0), { version: 1, live: false })
      assert.strictEqual(at(next.body, "nextCursor"), null)
      const back = yield* call(target, "POST", "/deployments/1/activate")
      assert.deepInclude(back.body, { version: 1, live: true })
      const after = yield* call(target, "GET")
      assert.deepInclude(after.body, {
        version: 1,
        crons: ["*/5 * * * *"],
        durableObjects: ["Room"],
        resources: {
          databases: [{ binding: "DB", bound: true, sizeBytes: 4096 }],
          kv: [],
          files: [],
          queues: [{ binding: "JOBS", messages: 0 }]
        }
      })
      const changes = calls.filter(
        ({ environmentId, kind }) => kind === "changed" && environmentId === target.environmentId
      )
      assert.strictEqual(changes.length, 4)
      for (const version of ["3", "0", "x", "1.5"]) {
        const missing = yield* call(target, "POST", `/deployments/${version}/activate`)
        assert.strictEqual(missing.status, 404)
      }
      yield* deploy(target, {}, `${code} // three`)
      assert.deepInclude((yield* call(target, "GET")).body, { version: 3 })
    })
  )

  it.effect("refuses function deployments that break a limit or a rule, and names the field", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      yield* enable(target)
      for (const [rest, path] of cases) {
        const answer = yield* call(target, "POST", "/deployments", deploymentOf(code, rest))
        assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "invalid_request"], path)
        const paths = JSON.stringify(issues(answer.body))
        assert.include(paths, `"path":"${path}`, paths)
      }
      const large = base64("x".repeat(6 * 1024 * 1024))
      const answer = yield* call(
        target,
        "POST",
        "/deployments",
        deploymentOf(
          code,
          withModules(module("a.txt", "text", large), module("b.txt", "text", large))
        )
      )
      assert.deepStrictEqual([answer.status, codeOf(answer)], [413, "payload_too_large"])
      assert.deepInclude((yield* call(target, "GET")).body, { deployed: false })
    })
  )

  it.effect(
    "gives concurrent function deployments consecutive versions, of which one is live",
    () =>
      Effect.gen(function* () {
        const { target } = yield* setUp
        yield* enable(target)
        const made = yield* Effect.forEach(
          Array.from({ length: 6 }, (_, i) => i),
          (i) => deploy(target, { message: `Number ${i}` }),
          { concurrency: "unbounded" }
        )
        const versions = made.map((body) => Number(at(body, "version"))).toSorted((a, b) => a - b)
        assert.deepStrictEqual(versions, [1, 2, 3, 4, 5, 6])
        const { body } = yield* call(target, "GET", "/deployments")
        const live = [0, 1, 2, 3, 4, 5].filter((i) => at(body, "deployments", i, "live") === true)
        assert.strictEqual(live.length, 1)
      })
  )
})
