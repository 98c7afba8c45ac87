/** Saves and stats of a player over HTTP with the secret key, as a game server uses them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { at } from "#testing/players"
import { configure, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { codeOf, newGame } from "../../support/players.ts"

const Node = nodeWith({ SVC_THROTTLES: "on" }).pipe(Layer.provideMerge(SharedDatabase.layer))

const config = {
  version: 1,
  features: { saves: true, stats: true },
  stats: [{ key: "score", aggregation: "sum" }],
  integrity: { stats: { maxSubmitsPerMinute: 1 } }
}

layer(Node, { timeout: "60 seconds" })("a game server with the secret key", (it) => {
  it.effect("writes, lists, reads and deletes a player's saves, whose text it keeps", () =>
    Effect.gen(function* () {
      const { player, server } = yield* newGame(config)
      const path = `/v1/admin/players/${player.id}/saves`
      const data = `{"b":1.10,"a":12345678901234567890}`
      const written = yield* server("PUT", `${path}/slot`, `{"data":${data},"ifVersion":0}`, {
        "content-type": "application/json"
      })
      assert.strictEqual(written.status, 200, JSON.stringify(written.body))
      assert.include(yield* player.askText("/v1/saves/slot"), `"data":${data}`)
      const stale = yield* server("PUT", `${path}/slot`, { data: 1, ifVersion: 0 })
      assert.strictEqual(codeOf(stale), "version_conflict")
      yield* player.ask("PUT", "/v1/saves/own", { data: { mine: true } })
      const list = yield* server("GET", path)
      assert.sameMembers(
        [at(list.body, "saves", 0, "key"), at(list.body, "saves", 1, "key")],
        ["slot", "own"]
      )
      const read = yield* server("GET", `${path}/own`)
      assert.deepStrictEqual(at(read.body, "data"), { mine: true })
      const kept = yield* server("DELETE", `${path}/own?ifVersion=7`)
      assert.strictEqual(codeOf(kept), "version_conflict")
      const deleted = yield* server("DELETE", `${path}/own?ifVersion=1`)
      assert.deepStrictEqual(deleted.body, { deleted: true })
      assert.strictEqual(codeOf(yield* player.ask("GET", "/v1/saves/own")), "save_not_found")
    })
  )

  it.effect("writes beyond the rate of the player, also for a banned player", () =>
    Effect.gen(function* () {
      const { player, server } = yield* newGame(config)
      const sql = yield* SqlClient.SqlClient
      // The bucket of the player is empty for an hour.
      yield* sql`
        insert into throttles (key, granted, full_at)
        values (${`save:${player.id}`}, 0, extract(epoch from now()) * 1000 + 3600000)`
      const limited = yield* player.ask("PUT", "/v1/saves/slot", { data: 1 })
      assert.strictEqual(codeOf(limited), "rate_limited")
      const path = `/v1/admin/players/${player.id}`
      yield* server("POST", `${path}/ban`, {})
      const written = yield* server("PUT", `${path}/saves/slot`, { data: 1 })
      assert.strictEqual(written.status, 200)
      for (const score of [1, 2, 3]) {
        const report = yield* server("POST", `${path}/stats`, { stats: { score } })
        assert.strictEqual(report.status, 200, JSON.stringify(report.body))
      }
      const stats = yield* server("GET", `${path}/stats`)
      assert.deepStrictEqual(stats.body, { stats: { score: 6 } })
    })
  )

  it.effect("keeps its idempotency keys apart from those of the player", () =>
    Effect.gen(function* () {
      const { player, server } = yield* newGame(config)
      const path = `/v1/admin/players/${player.id}/stats`
      const key = { "idempotency-key": "match-1" }
      yield* player.ask("POST", "/v1/stats", { stats: { score: 1 } }, key)
      const first = yield* server("POST", path, { stats: { score: 2 } }, key)
      const again = yield* server("POST", path, { stats: { score: 2 } }, key)
      assert.deepStrictEqual([first.status, again.status], [200, 200])
      assert.deepStrictEqual(again.body, first.body)
      assert.deepStrictEqual((yield* server("GET", path)).body, { stats: { score: 3 } })
    })
  )

  it.effect("gets player_not_found for a player of another environment, after the feature", () =>
    Effect.gen(function* () {
      const { server, tenant } = yield* newGame(config)
      const other = yield* newGame(config)
      const calls = [
        ["GET", "saves"],
        ["GET", "saves/slot"],
        ["PUT", "saves/slot"],
        ["DELETE", "saves/slot"],
        ["GET", "stats"],
        ["POST", "stats"]
      ] as const
      const codes = (playerId: string) =>
        Effect.forEach(calls, ([method, rest]) =>
          Effect.map(
            server(
              method,
              `/v1/admin/players/${playerId}/${rest}`,
              method === "GET" ? undefined : {}
            ),
            codeOf
          )
        )
      const unique = (all: ReadonlyArray<unknown>) => [...new Set(all)]
      for (const id of [other.player.id, "pl_none"]) {
        assert.deepStrictEqual(unique(yield* codes(id)), ["player_not_found"])
      }
      yield* configure(tenant, { version: 1 })
      assert.deepStrictEqual(unique(yield* codes(other.player.id)), ["feature_disabled"])
    })
  )
})
