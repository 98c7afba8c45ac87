/** A project that is removed leaves nothing: no row, no key, no connection (spec section 4.9). */
import { assert, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { TestApp, TestDatabase } from "#src/testing/app"
import { at, configure, goOnline, guest, request } from "#src/testing/players"
import { codeOf } from "./developers/asking.ts"
import { DatabaseLive } from "./service.ts"

const App = TestApp.layerWith().pipe(Layer.provideMerge(DatabaseLive))

const Sql = Layer.unwrap(
  Effect.map(TestDatabase, ({ url }) => PgClient.layer({ url: Redacted.make(url) }))
)

/** Tables with rows of a project or of its environments, by any column that names one. */
const leftovers = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
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
  const { developer, project, url } = app
  const signedIn = yield* request(`${url}/v1/developers/login`, { body: developer })
  const headers = { authorization: `Bearer ${String(at(signedIn.body, "token"))}` }
  const ask = (method: string, path: string, body?: unknown) =>
    request(`${url}/v1/projects${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body })
    })
  return { app, ask, project, url }
})

const features = {
  features: { multiplayer: true, realtimeChannels: true, saves: true, stats: true },
  stats: [{ key: "score", title: "Score" }],
  multiplayer: { modes: [{ key: "duel", title: "Duel", minPlayers: 2, maxPlayers: 2 }] }
}

layer(App, { excludeTestServices: true })("a project", (it) => {
  it.effect("shows what is alive, and when it is removed leaves nothing", () =>
    Effect.gen(function* () {
      const { app, ask, url } = yield* setUp
      const made = yield* ask("POST", "", { name: "Doomed" })
      const id = String(at(made.body, "project", "id"))
      const keys = at(made.body, "plainKeys", "development")
      const target = {
        url,
        publishableKey: String(at(keys, "publishableKey")),
        secretKey: String(at(keys, "secretKey"))
      }
      yield* configure(target, features)
      const ada = yield* goOnline(target, yield* guest(target, "Ada"))
      const bob = yield* goOnline(target, yield* guest(target, "Bob"))
      yield* ada.socket.ask({ t: "create", mode: "duel", private: true })
      yield* ada.socket.ask({ t: "channelCreate" })
      yield* bob.socket.say({ t: "quickMatch", mode: "duel", rid: "q" })
      const server = { "x-svc-key": target.secretKey }
      const player = {
        "x-svc-key": target.publishableKey,
        authorization: `Bearer ${ada.accessToken}`
      }
      yield* request(`${url}/v1/saves/slot`, { method: "PUT", headers: player, body: { data: 1 } })
      yield* request(`${url}/v1/stats`, {
        headers: { ...player, "idempotency-key": "once" },
        body: { stats: { score: 5, other: 1 } }
      })
      yield* request(`${url}/v1/admin/integrity/webhook-secret`, { headers: server })
      yield* request(`${url}/v1/realtime/channels/lobby`, {
        method: "PUT",
        headers: server,
        body: {}
      })

      const live = Effect.map(
        ask("GET", `/${id}/environments/development/realtime`),
        ({ body }) => body
      )
      const view = yield* app.eventually(
        Effect.map(live, (body) =>
          at(body, "connections") === 2 &&
          at(body, "rooms", 0, "connected") === 1 &&
          at(body, "channels", 1) !== undefined &&
          at(body, "queues", 0, "waiting") === 1
            ? body
            : undefined
        ),
        "the live view shows everybody"
      )
      const { body: overview } = yield* ask("GET", `/${id}/environments/development/overview`)
      assert.strictEqual(at(overview, "online"), 2)
      assert.deepInclude(at(view, "rooms", 0), {
        mode: "duel",
        private: true,
        locked: false,
        hostId: ada.id,
        players: 1,
        maxPlayers: 2
      })
      assert.deepStrictEqual(at(view, "queues"), [{ mode: "duel", waiting: 1 }])
      assert.isFalse(at(view, "truncated"))

      const sql = yield* PgClient.PgClient
      const rows = yield* sql<{ id: string }>`select id from environments where project_id = ${id}`
      const ids = [id, ...rows.map((row) => row.id)]
      for (const table of ["rooms", "channels", "saves", "stats", "live_reports", "keys"]) {
        assert.include(yield* leftovers(ids), table)
      }

      const removed = yield* ask("DELETE", `/${id}`)
      assert.deepStrictEqual(removed.body, { deleted: true })
      assert.strictEqual((yield* ada.socket.closed).code, 4003)
      assert.strictEqual((yield* bob.socket.closed).code, 4003)
      assert.strictEqual(codeOf(yield* ask("GET", `/${id}`)), "not_found")
      for (const key of [target.publishableKey, target.secretKey]) {
        const refused = yield* request(`${url}/v1/config`, { headers: { "x-svc-key": key } })
        assert.strictEqual(codeOf(refused), "invalid_key")
      }
      const nothingLeft = Effect.map(Effect.orDie(leftovers(ids)), (tables) => tables.length === 0)
      yield* app.eventually(
        Effect.provideService(nothingLeft, PgClient.PgClient, sql),
        "no row is left"
      )
      assert.strictEqual(codeOf(yield* ask("GET", `/${app.project}`)), "ok")
      yield* newcomerOf(app)
    }).pipe(Effect.provide(Sql))
  )
})

/** The other projects go on. */
const newcomerOf = (app: TestApp["Service"]) =>
  Effect.flatMap(guest(app), (player) => goOnline(app, player))
