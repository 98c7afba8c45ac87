/** Databases, keys and files of functions over the whole service: what is kept, listed and deleted. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestApp } from "#testing/app"
import { at } from "#testing/players"
import { makeFolder } from "../../support/cli/svc.ts"
import { call, deploy, enable, enableWith } from "../../support/function-calls.ts"
import { visit } from "../../support/hosting.ts"
import { DatabaseLive } from "../../support/service.ts"

const App = TestApp.layerWith().pipe(Layer.provideMerge(DatabaseLive))

const BoundedApp = TestApp.layerWith({ SVC_FUNCTIONS_CPU_MS_MAX: "400" }).pipe(
  Layer.provideMerge(DatabaseLive)
)

const patient = { timeout: "120 seconds", excludeTestServices: true } as const

/** Stores a table, a key and a file, and as many of both below `log/`. */
const storing = (count: number) => `export default { async fetch(request, { DB, FILES, KEPT }) {
  await DB.exec("create table if not exists t (a)")
  const names = Array.from({ length: ${count} }, (_, i) => "log/" + String(i).padStart(3, "0"))
  for (let i = 0; i < names.length; i += 50) {
    await Promise.all(names.slice(i, i + 50).map((name) => KEPT.put(name, "x")))
    await Promise.all(names.slice(i, i + 50).map((name) => FILES.put(name, "12345")))
  }
  await KEPT.put("log", "not below it", { expirationTtl: 3600 })
  await FILES.put("log", "not below it")
  if (new URL(request.url).pathname === "/odd") {
    for (const name of ["", "-a", "é/..?#%25"]) await FILES.put(name, "odd")
  }
  return new Response("stored")
} }`

const bindings = [
  { name: "DB", type: "db" },
  { name: "KEPT", type: "kv" },
  { name: "FILES", type: "files" }
]

const setUp = Effect.fnUntraced(function* (count: number, path = "") {
  const app = yield* TestApp
  yield* enableWith(app, { cpuMs: 30_000 })
  const deployed = yield* deploy(app, { bindings }, storing(count))
  const { pathname } = new URL(String(at(deployed, "url")))
  const { body } = yield* visit(app.url, "a", pathname + path)
  assert.strictEqual(body.toString(), "stored")
  return app
})

const resourcesOf = Effect.fnUntraced(function* (target: TestApp["Service"]) {
  const { databases, files, kv } = Object(at((yield* call(target, "GET")).body, "resources"))
  const all: ReadonlyArray<unknown> = [...databases, ...kv, ...files]
  return all.map((one) => [at(one, "binding"), at(one, "bound"), Number(at(one, "sizeBytes")) > 0])
})

layer(App, patient)("stores of functions", (it) => {
  it.effect("lists stores for as long as their data is kept, also without code", () =>
    Effect.gen(function* () {
      const app = yield* setUp(1)
      const listed = (bound: boolean, hasData: boolean) =>
        bindings.map(({ name }) => [name, bound, hasData])
      assert.deepStrictEqual(yield* resourcesOf(app), listed(true, true))
      yield* call(app, "DELETE")
      assert.deepStrictEqual(yield* resourcesOf(app), listed(false, true))
      // A version that binds one of them finds its data.
      yield* deploy(app, { bindings: bindings.slice(0, 1) })
      const [database, ...others] = listed(false, true)
      assert.deepStrictEqual(yield* resourcesOf(app), [[database?.[0], true, true], ...others])
      const { body } = yield* call(app, "POST", "/db/DB/query", { sql: "select count(*) from t" })
      assert.deepStrictEqual(at(body, "rows"), [[0]])
      yield* call(app, "DELETE", "?purge=true")
      assert.deepStrictEqual(yield* resourcesOf(app), [])
    })
  )

  it.effect("lists and deletes keys and files, one, by prefix and all", () =>
    Effect.gen(function* () {
      const app = yield* setUp(150)
      for (const path of ["/kv/KEPT", "/files/FILES"]) {
        const isKeys = path.startsWith("/kv")
        const page = yield* call(app, "GET", `${path}?limit=2`)
        const [first, second] = Array.from(Object(at(page.body, "entries")))
        assert.strictEqual(at(first, "name"), "log")
        assert.strictEqual(at(first, "sizeBytes"), isKeys ? null : 12)
        if (isKeys) assert.match(String(at(first, "expiresAt")), /^20\d\d-.*Z$/)
        assert.deepStrictEqual(second, {
          name: "log/000",
          sizeBytes: isKeys ? null : 5,
          expiresAt: null
        })
        const cursor = encodeURIComponent(String(at(page.body, "nextCursor")))
        const next = yield* call(app, "GET", `${path}?limit=1&cursor=${cursor}`)
        assert.strictEqual(at(next.body, "entries", 0, "name"), "log/001")
        // Of a name that is a beginning of others, only itself goes.
        const one = yield* call(app, "DELETE", `${path}?name=log`)
        assert.deepStrictEqual(one.body, { deleted: 1, more: false })
        const again = yield* call(app, "DELETE", `${path}?name=log`)
        assert.deepStrictEqual(again.body, { deleted: 0, more: false })
        for (const more of [true, false]) {
          const { body } = yield* call(app, "DELETE", `${path}?prefix=log%2F`)
          assert.deepStrictEqual(body, { deleted: more ? 100 : 50, more })
        }
        assert.deepStrictEqual((yield* call(app, "GET", path)).body, {
          entries: [],
          nextCursor: null
        })
      }
    })
  )

  it.effect("refuses a deletion that does not say what, and stores that are not bound", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* enable(app)
      yield* deploy(app, { bindings })
      for (const [path, status] of [
        ["/kv/KEPT", 400],
        ["/kv/KEPT?name=a&prefix=b", 400],
        // No name is no prefix.
        ["/kv/KEPT?name=", 200],
        ["/kv/FILES?prefix=", 404],
        ["/files/KEPT?prefix=", 404],
        ["/kv/DB?prefix=", 404],
        ["/kv/OTHER?prefix=", 404]
      ] as const) {
        assert.strictEqual((yield* call(app, "DELETE", path)).status, status, path)
      }
      for (const query of ["?cursor=%00", "?limit=101", `?prefix=${"a".repeat(1025)}`]) {
        assert.strictEqual((yield* call(app, "GET", `/kv/KEPT${query}`)).status, 400, query)
      }
    })
  )
})

layer(App, patient)("svc functions kv and files", (it) => {
  it.effect("list page after page, and delete what is named, whatever its name", () =>
    Effect.gen(function* () {
      const { secretKey, url } = yield* setUp(150, "/odd")
      const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: secretKey })
      const first = yield* folder.svc("functions kv list KEPT --json")
      const entries = Array.from(Object(at(JSON.parse(first.stdout), "entries")))
      assert.lengthOf(entries, 100)
      const cursor = String(at(JSON.parse(first.stdout), "nextCursor"))
      assert.include(first.stderr, `--cursor ${cursor}`)
      const next = yield* folder.svc(`functions kv list KEPT --cursor ${cursor}`)
      assert.include(next.stdout, "log/099")
      const below = yield* folder.svc("functions kv list KEPT --prefix log/14")
      assert.strictEqual(below.stdout.trim().split("\n").length, 11)
      assert.strictEqual(below.stderr, "")
      for (const name of ["", "-a", "é/..?#%25"]) {
        const words = ["functions", "files", "delete", "FILES", "--", name]
        assert.strictEqual((yield* folder.svc(words)).code, 0, name)
        const again = yield* folder.svc(words)
        assert.strictEqual(again.code, 2, name)
        assert.include(again.stderr, "There is no file")
      }
      const all = yield* folder.svc("functions kv delete KEPT --prefix log --json")
      assert.deepStrictEqual(JSON.parse(all.stdout), { binding: "KEPT", deleted: 151 })
      for (const wrong of ["kv delete FILES a", "files list KEPT", "kv delete KEPT"]) {
        const refused = yield* folder.svc(`functions ${wrong}`)
        assert.deepStrictEqual([refused.code, refused.stdout], [2, ""], wrong)
      }
    })
  )
})

layer(BoundedApp, patient)("limits of an operator", (it) => {
  it.effect(
    "refuses a larger CPU time of calls than the operator allows, and says what holds",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* enable(app)
        for (const [method, path] of [
          ["PUT", "/limits"],
          ["POST", "/enable"]
        ] as const) {
          const refused = yield* call(app, method, path, { cpuMs: 401, subRequests: 7 })
          assert.strictEqual(refused.status, 400)
          assert.deepStrictEqual(at(refused.body, "error", "details", "issues"), [
            { path: "cpuMs", message: "Expected at most 400: the operator allows no more here" }
          ])
        }
        const { body } = yield* call(app, "PUT", "/limits", { cpuMs: 400 })
        assert.deepStrictEqual(at(body, "limits"), { cpuMs: 400, cpuMsMax: 400, subRequests: 50 })
      })
  )
})
