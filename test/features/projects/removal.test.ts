/** Removal of a project deletes its rows and keys and closes its connections. */
import { assert, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { TestApp, TestDatabase } from "#testing/app"
import { at, configure, goOnline, guest, request, type TestTarget } from "#testing/players"
import { codeOf } from "../../support/developer-requests.ts"
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

  it.effect("leaves only audit rows after its removal, and closes its keys and connections", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { app, ask, id, ids, target } = yield* makeProject
      const { ada, bob } = yield* populate(target)
      const left = Effect.provideService(Effect.orDie(tablesWithRows(ids)), PgClient.PgClient, sql)
      const expected = ["rooms", "channels", "saves", "stats", "live_reports", "player_days"]
      yield* app.eventually(
        Effect.map(left, (tables) => expected.every((table) => tables.includes(table))),
        "all rows are stored"
      )

      const removed = yield* ask("DELETE", `/${id}`)
      assert.deepStrictEqual(removed.body, { deleted: true })
      assert.strictEqual((yield* ada.socket.closed).code, 4003)
      assert.strictEqual((yield* bob.socket.closed).code, 4003)
      assert.strictEqual(codeOf(yield* ask("GET", `/${id}`)), "not_found")
      for (const key of [target.publishableKey, target.secretKey]) {
        const headers = { "x-svc-key": key }
        const refused = yield* request(`${target.url}/v1/config`, { headers })
        assert.strictEqual(codeOf(refused), "invalid_key")
      }
      yield* app.eventually(
        Effect.map(left, (tables) => tables.join() === "audit"),
        "only audit rows are left"
      )
      // The other project keeps working.
      assert.strictEqual(codeOf(yield* ask("GET", `/${app.project}`)), "ok")
      yield* goOnline(app, yield* guest(app))
    })
  )
})
