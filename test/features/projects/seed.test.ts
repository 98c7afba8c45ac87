/** The demo project: one process creates it once, outside production only. */
import { assert, layer } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Layer, Path, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { Configs } from "#server/features/config/service"
import { Environments } from "#server/features/projects/environments"
import { SeedLive } from "#server/features/projects/seed"
import { at } from "#testing/players"
import { buildAnother, coreOfNode, SharedDatabase } from "../../support/http-stack.ts"

type Env = Readonly<Record<string, string>>

const Json = Schema.fromJsonString(Schema.Unknown)

/** Starts a node that seeds first; each start simulates a new process. */
const start = (env: Env) => buildAnother(SeedLive.pipe(Layer.provideMerge(coreOfNode(env))))

const newDataDir = Effect.flatMap(FileSystem.FileSystem, (fs) =>
  fs.makeTempDirectoryScoped({ prefix: "svc-seed-" })
)

const readKeys = Effect.fnUntraced(function* (dataDir: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(dataDir, "dev-keys.json")
  const mode = Number((yield* fs.stat(file)).mode) & 0o777
  return { mode, keys: yield* Schema.decodeEffect(Json)(yield* fs.readFileString(file)) }
})

const countsOf = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    select (select count(*)::int from projects) as projects,
      (select count(*)::int from environments) as environments,
      (select count(*)::int from keys) as keys,
      (select count(*)::int from developers) as developers,
      (select count(*)::int from configs) as configs`
  return rows[0]
}).pipe((effect) =>
  Effect.flatMap(SharedDatabase, (url) =>
    Effect.provide(effect, poolLayer({ url, connections: 1 }))
  )
)

const none = { projects: 0, environments: 0, keys: 0, developers: 0, configs: 0 }
const one = { projects: 1, environments: 2, keys: 4, developers: 1, configs: 1 }

layer(NodeServices.layer)("seed", (it) => {
  it.effect("creates one project when several processes start together", () =>
    Effect.gen(function* () {
      const dataDir = yield* newDataDir
      const env = { SVC_DATA_DIR: dataDir }
      const [node] = yield* Effect.all([start(env), start(env), start(env)], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(yield* countsOf, one)

      const { keys, mode } = yield* readKeys(dataDir)
      assert.strictEqual(mode, 0o600)
      assert.strictEqual(at(keys, "baseUrl"), "https://play.example.com")
      assert.match(String(at(keys, "project")), /^prj_/)
      assert.strictEqual(at(keys, "developer", "email"), "demo@localhost")
      yield* Effect.gen(function* () {
        const environments = yield* Environments
        const configs = yield* Configs
        for (const name of ["development", "production"]) {
          const key = String(at(keys, name, "publishableKey"))
          const { environmentId, name: opened } = yield* environments.findByKey(key)
          assert.strictEqual(opened, name)
          const { features } = (yield* configs.current(environmentId)).config
          const on = new Set(Object.values(features))
          assert.deepStrictEqual(on, new Set([name === "development"]))
        }
      }).pipe(Effect.provideContext(node))
    }).pipe(Effect.provide(SharedDatabase.layer))
  )

  it.effect("updates only the base URL at a later start", () =>
    Effect.gen(function* () {
      const dataDir = yield* newDataDir
      yield* start({ SVC_DATA_DIR: dataDir })
      const { keys: before } = yield* readKeys(dataDir)
      yield* start({ SVC_DATA_DIR: dataDir, SVC_BASE_URL: "http://localhost:9000/" })
      const { keys: after } = yield* readKeys(dataDir)
      assert.deepStrictEqual(after, { ...Object(before), baseUrl: "http://localhost:9000" })
      // A start with another data directory writes no key file.
      yield* start({ SVC_DATA_DIR: yield* newDataDir })
      assert.deepStrictEqual(yield* countsOf, one)
    }).pipe(Effect.provide(SharedDatabase.layer))
  )

  it.effect("enables only offered features", () =>
    Effect.gen(function* () {
      const dataDir = yield* newDataDir
      const node = yield* start({ SVC_DATA_DIR: dataDir, SVC_FEATURES: "multiplayer" })
      const { keys } = yield* readKeys(dataDir)
      const { features } = yield* Effect.gen(function* () {
        const environments = yield* Environments
        const key = String(at(keys, "development", "secretKey"))
        const { environmentId } = yield* environments.findByKey(key)
        return (yield* (yield* Configs).current(environmentId)).config
      }).pipe(Effect.provideContext(node))
      assert.deepStrictEqual(
        Object.entries(features).filter(([, on]) => on),
        [["multiplayer", true]]
      )
    }).pipe(Effect.provide(SharedDatabase.layer))
  )

  it.effect("creates no project when the key file cannot be written", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const dataDir = yield* newDataDir
      yield* fs.makeDirectory(path.join(dataDir, "dev-keys.json", "in-the-way"), {
        recursive: true
      })
      const exit = yield* Effect.exit(start({ SVC_DATA_DIR: dataDir }))
      assert.strictEqual(exit._tag, "Failure")
      assert.deepStrictEqual(yield* countsOf, none)
    }).pipe(Effect.provide(SharedDatabase.layer))
  )

  it.effect("seeds nothing in production", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const dataDir = yield* newDataDir
      yield* start({ SVC_DATA_DIR: dataDir, NODE_ENV: "production" })
      assert.deepStrictEqual(yield* countsOf, none)
      assert.deepStrictEqual(yield* fs.readDirectory(dataDir), [])
    }).pipe(Effect.provide(SharedDatabase.layer))
  )

  it.effect("stores the developer's password as an argon2id hash", () =>
    Effect.gen(function* () {
      const dataDir = yield* newDataDir
      yield* start({ SVC_DATA_DIR: dataDir })
      const { keys } = yield* readKeys(dataDir)
      const url = yield* SharedDatabase
      const rows = yield* Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`select password_hash from developers`
      ).pipe(Effect.provide(poolLayer({ url, connections: 1 })))
      const hash = String(rows[0]?.passwordHash)
      assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
      assert.notInclude(hash, String(at(keys, "developer", "password")))
    }).pipe(Effect.provide(SharedDatabase.layer))
  )
})
