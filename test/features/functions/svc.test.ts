/** The binding `svc` in real workerd: each of its methods runs the endpoint of the whole service. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { TestApp, TestDatabase } from "#testing/app"
import { at, configure, guest, request } from "#testing/players"
import { deploy, enable } from "../../support/function-calls.ts"
import { DatabaseLive } from "../../support/service.ts"

const Rows = Layer.unwrap(
  Effect.map(TestDatabase, ({ url }) => poolLayer({ url: Redacted.make(url), connections: 1 }))
)

const App = TestApp.layerWith({}).pipe(Layer.provideMerge(Rows), Layer.provideMerge(DatabaseLive))

/** Calls the methods of the binding that the body names, one after the other. */
const code = `
  export default { async fetch(request, env) {
    const answers = []
    for (const [path, ...given] of await request.json()) {
      const [group, method] = path.split(".")
      answers.push(await env.svc[group][method](...given).then(
        (value) => ({ value }),
        ({ code, details, status }) => ({ code, details, status })
      ))
    }
    return Response.json(answers)
  } }`

type Call = readonly [path: string, ...given: ReadonlyArray<unknown>]

const setUp = Effect.gen(function* () {
  const app = yield* TestApp
  yield* configure(app, {
    version: 1,
    features: { saves: true, stats: true, multiplayer: true, realtimeChannels: true },
    stats: [{ key: "score", aggregation: "sum" }]
  })
  yield* enable(app)
  const address = String(at(yield* deploy(app, {}, code), "url"))
  const url = `${app.url}/fn${address.slice(address.lastIndexOf("/"))}`
  const svc = Effect.fnUntraced(function* (...calls: ReadonlyArray<Call>) {
    const { body, status } = yield* request(url, { method: "POST", body: calls })
    assert.strictEqual(status, 200, JSON.stringify(body))
    return calls.map((_, index) => at(body, index))
  })
  return { app, svc, player: yield* guest(app) }
})

layer(App, { timeout: "120 seconds", excludeTestServices: true })("env.svc", (it) => {
  it.effect("reads, bans and unbans players, and verifies their tokens", () =>
    Effect.gen(function* () {
      const { player, svc } = yield* setUp
      const [found, banned, unbanned, again, verified, nobody] = yield* svc(
        ["players.get", player.id],
        ["players.ban", player.id, { reason: "spam", durationHours: 2 }],
        ["players.unban", player.id],
        ["players.unban", player.id],
        ["players.verifyToken", player.accessToken],
        ["players.get", ".."]
      )
      assert.strictEqual(at(found, "value", "id"), player.id)
      assert.isFalse(at(found, "value", "banned"))
      assert.isTrue(at(banned, "value", "banned"))
      assert.isFalse(at(unbanned, "value", "banned"))
      assert.isFalse(at(again, "value", "banned"))
      assert.strictEqual(at(verified, "value", "id"), player.id)
      assert.deepInclude(nobody, { code: "player_not_found", status: 404 })
      const sql = yield* SqlClient.SqlClient
      const entries = yield* sql`
        select action, actor_name, address from audit where target_id = ${player.id} order by id`
      assert.deepStrictEqual(entries, [
        { action: "player.ban", actorName: "functions", address: null },
        { action: "player.unban", actorName: "functions", address: null }
      ])
    })
  )

  it.effect("writes, reads, lists and deletes saves, and reports stats", () =>
    Effect.gen(function* () {
      const { player, svc } = yield* setUp
      const { id } = player
      const [written, stale, read, list, refused, deleted, gone] = yield* svc(
        ["saves.put", id, "slot 1", { level: 3 }],
        ["saves.put", id, "slot", { level: 3 }],
        ["saves.get", id, "slot"],
        ["saves.list", id],
        ["saves.delete", id, "slot", { ifVersion: 9 }],
        ["saves.delete", id, "slot", { ifVersion: 1 }],
        ["saves.get", id, "slot"]
      )
      assert.deepInclude(written, { code: "invalid_request", status: 400 })
      assert.strictEqual(at(stale, "value", "version"), 1)
      assert.deepStrictEqual(at(read, "value", "data"), { level: 3 })
      assert.strictEqual(at(list, "value", 0, "key"), "slot")
      assert.strictEqual(at(refused, "code"), "version_conflict")
      assert.strictEqual(at(refused, "details", "currentVersion"), 1)
      assert.deepStrictEqual(deleted, {})
      assert.strictEqual(at(gone, "code"), "save_not_found")
      const [report, stats] = yield* svc(["stats.report", id, { score: 5 }], ["stats.get", id])
      assert.strictEqual(at(report, "value", "stats", "score", "all"), 5)
      assert.deepStrictEqual(at(stats, "value"), { score: 5 })
    })
  )

  it.effect("lists rooms, and manages channels and sends to them", () =>
    Effect.gen(function* () {
      const { player, svc } = yield* setUp
      const { id } = player
      const [rooms, mode, made, sent, muted, channel, closed, gone] = yield* svc(
        ["rooms.list"],
        ["rooms.list", { mode: "nothing" }],
        ["channels.put", "lobby", { maxMembers: 5 }],
        ["channels.send", "lobby", "news", { text: "Hello" }],
        ["channels.moderate", "lobby", { op: "mute", playerId: id }],
        ["channels.get", "lobby"],
        ["channels.delete", "lobby"],
        ["channels.get", "lobby"]
      )
      assert.deepStrictEqual(rooms, { value: [] })
      assert.strictEqual(at(mode, "code"), "mode_not_found")
      assert.strictEqual(at(made, "value", "channel", "maxMembers"), 5, JSON.stringify(made))
      assert.strictEqual(at(sent, "value"), 0)
      assert.deepStrictEqual(muted, {})
      assert.strictEqual(at(channel, "value", "muted", 0, "playerId"), id)
      assert.deepStrictEqual(closed, {})
      assert.strictEqual(at(gone, "code"), "channel_not_found")
      const sql = yield* SqlClient.SqlClient
      const entries = yield* sql`
        select action, actor_name from audit where target_kind = 'channel' order by id`
      assert.deepStrictEqual(
        entries.map((entry) => [entry["action"], entry["actorName"]]),
        [
          ["channel.put", "functions"],
          ["channel.moderate", "functions"],
          ["channel.delete", "functions"]
        ]
      )
    })
  )
})
