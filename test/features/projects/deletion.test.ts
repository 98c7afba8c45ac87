/** Deletion of projects: it closes them at once, can be undone, and removes the data later. */
import { assert, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { makeSweep } from "#server/features/projects/deletion"
import { BlobStore } from "#server/platform/blobs/store"
import { poolLayer } from "#sql/database"
import { DeletionRepository } from "#sql/projects/deletion"
import { TestApp, TestDatabase } from "#testing/app"
import { at, configure, goOnline, guest, request, type TestTarget } from "#testing/players"
import { codeOf } from "../../support/developer-requests.ts"
import { deploy, enable } from "../../support/function-calls.ts"
import { FakeFunctionsRuntime, FakeRuntime } from "../../support/function-runtime.ts"
import { DatabaseLive } from "../../support/service.ts"

const App = TestApp.layerWith().pipe(Layer.provideMerge(DatabaseLive))

const Sql = Layer.unwrap(
  Effect.map(TestDatabase, ({ url }) => PgClient.layer({ url: Redacted.make(url) }))
)

/** Tables that still have rows of a project or of its environments. */
const tablesWithRows = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const sql = yield* PgClient.PgClient
  const columns = yield* sql<{ table_name: string; column_name: string }>`
    select table_name, column_name from information_schema.columns
    where table_schema = 'public' and column_name in ('environment_id', 'project_id')`
  assert.isAtLeast(columns.length, 10)
  const found = yield* Effect.forEach(columns, ({ column_name: column, table_name: table }) =>
    Effect.map(
      sql`select 1 from ${sql(table)} where ${sql(column)} = any(${[...ids]}::text[]) limit 1`,
      (rows) => (rows.length > 0 ? [table] : [])
    )
  )
  return found.flat()
})

const setUp = Effect.gen(function* () {
  const app = yield* TestApp
  const { developer, url } = app
  const signedIn = yield* request(`${url}/v1/developers/login`, { body: developer })
  const headers = { authorization: `Bearer ${String(at(signedIn.body, "token"))}` }
  const ask = (method: string, path: string, body?: unknown) =>
    request(`${url}/v1/projects${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body })
    })
  return { app, ask }
})

const document = {
  features: { multiplayer: true, realtimeChannels: true, saves: true, stats: true },
  stats: [{ key: "score", title: "Score" }],
  multiplayer: { modes: [{ key: "duel", title: "Duel", minPlayers: 2, maxPlayers: 2 }] }
}

/** Creates two online players, a room, channels, a ticket, and rows of every kind. */
const populate = Effect.fnUntraced(function* (target: TestTarget) {
  const { publishableKey, secretKey, url } = target
  yield* configure(target, document)
  const ada = yield* goOnline(target, yield* guest(target, "Ada"))
  const bob = yield* goOnline(target, yield* guest(target, "Bob"))
  yield* ada.socket.request({ t: "create", mode: "duel", private: true })
  yield* ada.socket.request({ t: "channelCreate" })
  yield* bob.socket.send({ t: "quickMatch", mode: "duel", rid: "q" })
  const server = { "x-svc-key": secretKey }
  const player = { "x-svc-key": publishableKey, authorization: `Bearer ${ada.accessToken}` }
  yield* request(`${url}/v1/saves/slot`, { method: "PUT", headers: player, body: { data: 1 } })
  yield* request(`${url}/v1/stats`, {
    headers: { ...player, "idempotency-key": "once" },
    body: { stats: { score: 5, other: 1 } }
  })
  yield* request(`${url}/v1/admin/integrity/webhook-secret`, { headers: server })
  const lobby = `${url}/v1/realtime/channels/lobby`
  yield* request(lobby, { method: "PUT", headers: server, body: {} })
  return { ada, bob }
})

/** Creates a project and returns its development environment. */
const makeProject = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const { app, ask } = yield* setUp
  const made = yield* ask("POST", "", { name: "Doomed" })
  const id = String(at(made.body, "project", "id"))
  const keys = at(made.body, "plainKeys", "development")
  const target = {
    url: app.url,
    publishableKey: String(at(keys, "publishableKey")),
    secretKey: String(at(keys, "secretKey"))
  }
  const rows = yield* sql<{ id: string }>`select id from environments where project_id = ${id}`
  const see = (what: string) =>
    Effect.map(ask("GET", `/${id}/environments/development/${what}`), ({ body }) => body)
  return { app, ask, id, ids: [id, ...rows.map((row) => row.id)], see, target }
})

/** The outcomes of a request with each of the keys. */
const codesOf = ({ publishableKey, secretKey, url }: TestTarget) =>
  Effect.forEach(
    [
      [`${url}/v1/gamedata/definitions`, publishableKey],
      [`${url}/v1/config`, secretKey]
    ] as const,
    ([address, key]) => Effect.map(request(address, { headers: { "x-svc-key": key } }), codeOf)
  )

layer(Layer.provideMerge(Sql, App), { excludeTestServices: true })("a project", (it) => {
  it.effect("shows the live rooms, queues and channels of all nodes", () =>
    Effect.gen(function* () {
      const { app, see, target } = yield* makeProject
      const { ada } = yield* populate(target)
      const isWhole = (view: unknown) =>
        at(view, "connections") === 2 &&
        at(view, "rooms", 0, "connected") === 1 &&
        at(view, "channels", 1) !== undefined &&
        at(view, "queues", 0, "waiting") === 1
      const view = yield* app.eventually(
        Effect.map(see("realtime"), (body) => (isWhole(body) ? body : undefined)),
        "the live view shows both players"
      )
      assert.deepInclude(at(view, "rooms", 0), {
        mode: "duel",
        private: true,
        locked: false,
        hostId: ada.id,
        players: 1,
        maxPlayers: 2
      })
      assert.deepStrictEqual(at(view, "queues"), [{ mode: "duel", waiting: 1 }])
      const channels = [0, 1].map((i) => at(view, "channels", i, "members"))
      assert.sameMembers(channels, [0, 1])
      assert.isFalse(at(view, "truncated"))
      assert.strictEqual(at(yield* see("overview"), "online"), 2)
    })
  )

  it.effect("closes a project at its deletion, and restores its keys, config and players", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { app, ask, id, target } = yield* makeProject
      const { ada, bob } = yield* populate(target)
      const revoked = yield* ask("POST", `/${id}/environments/development/keys`, { kind: "secret" })
      yield* ask("DELETE", `/${id}/keys/${String(at(revoked.body, "key", "id"))}`)

      const deleted = yield* ask("DELETE", `/${id}`)
      assert.strictEqual(at(deleted.body, "deleted"), true)
      const until = Date.parse(String(at(deleted.body, "restorableUntil")))
      const [clock] = yield* sql<{ millis: number }>`
        select (extract(epoch from now()) * 1000)::float8 as millis`
      const days = (until - Number(clock?.millis)) / 86_400_000
      assert.approximately(days, 7, 0.01)
      for (const { socket } of [ada, bob]) {
        assert.deepStrictEqual(yield* socket.closed, { code: 4001, reason: "key_revoked" })
      }
      for (const [method, path] of [
        ["GET", `/${id}`],
        ["GET", `/${id}/environments/development/overview`],
        ["DELETE", `/${id}`]
      ] as const) {
        assert.strictEqual(codeOf(yield* ask(method, path)), "not_found", path)
      }
      const log = yield* ask("GET", `/${id}/audit?action=project.delete`)
      assert.strictEqual(at(log.body, "entries", 0, "target", "id"), id)
      yield* app.eventually(
        Effect.map(codesOf(target), (codes) => codes.join() === "invalid_key,invalid_key"),
        "both keys are refused"
      )
      const list = (yield* ask("GET", "")).body
      const ids = (projects: unknown) =>
        Array.isArray(projects) ? projects.map((project) => project.id) : []
      assert.notInclude(ids(at(list, "projects")), id)
      assert.include(ids(at(list, "deleted")), id)

      const restored = yield* ask("POST", `/${id}/restore`)
      assert.strictEqual(at(restored.body, "project", "name"), "Doomed")
      assert.strictEqual(codeOf(yield* ask("POST", `/${id}/restore`)), "not_found")
      yield* app.eventually(
        Effect.map(codesOf(target), (codes) => codes.join() === "ok,ok"),
        "both keys work again"
      )
      const dead = { ...target, secretKey: String(at(revoked.body, "plain")) }
      assert.strictEqual((yield* codesOf(dead))[1], "invalid_key")
      const back = yield* goOnline(target, ada)
      const save = yield* request(`${target.url}/v1/saves/slot`, {
        headers: {
          "x-svc-key": target.publishableKey,
          authorization: `Bearer ${back.accessToken}`
        }
      })
      assert.strictEqual(at(save.body, "data"), 1)
      const { body: audit } = yield* ask("GET", `/${id}/audit`)
      assert.deepStrictEqual(
        [0, 1].map((i) => at(audit, "entries", i, "action")),
        ["project.restore", "project.delete"]
      )
    })
  )

  it.effect(
    "hides a deleted project's cards and functions at once, and restores them with it at once",
    () =>
      Effect.gen(function* () {
        const { ask, id, target } = yield* makeProject
        const images = { enabled: true, title: "Doomed" }
        yield* configure(target, { features: { hosting: true }, share: { images } })
        yield* enable(target)
        const url = String(at(yield* deploy(target), "url"))
        const label = url.slice(url.lastIndexOf("/") + 1)
        const paths = [`/fn/${label}/`, `/v1/share/images/${label}/card.png`]
        // Nodes remember where a label leads, also that it leads nowhere.
        const statuses = Effect.forEach(paths, (path) =>
          Effect.promise(async () => {
            const response = await fetch(`${target.url}${path}`)
            await response.arrayBuffer()
            return response.status
          })
        )
        assert.deepStrictEqual(yield* statuses, [200, 200])
        yield* ask("DELETE", `/${id}`)
        assert.deepStrictEqual(yield* statuses, [404, 404])
        yield* ask("POST", `/${id}/restore`)
        assert.deepStrictEqual(yield* statuses, [200, 200])
      }),
    { tags: "long" }
  )

  it.effect("purges a deleted project after seven days, all but its audit entries", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { url } = yield* TestDatabase
      const { app, ask, id, ids, target } = yield* makeProject
      yield* populate(target)
      const left = Effect.provideService(Effect.orDie(tablesWithRows(ids)), PgClient.PgClient, sql)
      const expected = ["rooms", "channels", "saves", "stats", "live_reports", "player_days"]
      yield* app.eventually(
        Effect.map(left, (tables) => expected.every((table) => tables.includes(table))),
        "all rows are stored"
      )
      yield* ask("DELETE", `/${id}`)
      const purged: Array<string> = []
      const sweep = Effect.flatten(makeSweep).pipe(
        Effect.provide(DeletionRepository.layer),
        Effect.provide(Layer.provideMerge(FakeFunctionsRuntime, FakeRuntime.layer)),
        Effect.provideService(
          BlobStore,
          BlobStore.of({
            temporaryFile: Effect.die("unused"),
            put: () => Effect.die("unused"),
            archive: () => Effect.die("unused"),
            fetch: () => Effect.die("unused"),
            fetchArchived: () => Effect.die("unused"),
            dropCopy: () => Effect.die("unused"),
            remove: () => Effect.die("unused"),
            removeAll: (environmentId) => Effect.sync(() => void purged.push(environmentId))
          })
        ),
        Effect.provide(poolLayer({ url: Redacted.make(url), connections: 1 }))
      )
      yield* sweep
      assert.include(yield* left, "saves")
      yield* sql`update projects set deleted_at = deleted_at - interval '7 days' where id = ${id}`
      assert.strictEqual(codeOf(yield* ask("POST", `/${id}/restore`)), "not_found")
      yield* sweep
      yield* app.eventually(
        Effect.map(left, (tables) => tables.join() === "audit"),
        "only audit rows are left"
      )
      assert.sameMembers(purged, ids.slice(1))
      // The other project keeps working.
      assert.strictEqual(codeOf(yield* ask("GET", `/${app.project}`)), "ok")
      yield* goOnline(app, yield* guest(app))
    })
  )
})
