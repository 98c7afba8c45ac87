/** The binding `svc`: calls of functions run the endpoints of the API in the process. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { FunctionsServerApi } from "#server/features/functions/control-plane"
import { at, guest, request } from "#testing/players"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase,
  type Tenant
} from "../../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const text = new TextDecoder()

const call = (tenant: Tenant, method: string, path: string, body?: unknown) =>
  Effect.gen(function* () {
    const api = yield* FunctionsServerApi
    const sent = Buffer.from(body === undefined ? "" : JSON.stringify(body))
    const reply = yield* api.call(tenant.environmentId, { method, path, body: sent })
    const answer: unknown = JSON.parse(text.decode(reply.body))
    return { status: reply.status, body: answer }
  })

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  const player = yield* guest({ ...development, url })
  return { development, player, url }
})

layer(Node, { timeout: "60 seconds" })("the binding svc", (it) => {
  it.effect("bans and unbans once, and audits only a ban that it lifts, as the key does", () =>
    Effect.gen(function* () {
      const { development, player } = yield* setUp
      const path = `/v1/admin/players/${player.id}`
      const terms = { reason: "spam", durationHours: 2 }
      const banned = yield* call(development, "POST", `${path}/ban`, terms)
      assert.isTrue(at(banned.body, "player", "banned"))
      yield* call(development, "POST", `${path}/unban`)
      const again = yield* call(development, "POST", `${path}/unban`)
      assert.strictEqual(again.status, 200)
      const sql = yield* SqlClient.SqlClient
      const entries = yield* sql`
        select action, actor_name, address from audit where target_id = ${player.id}`
      assert.sameDeepMembers(
        entries.map((entry) => [entry["action"], entry["actorName"], entry["address"]]),
        [
          ["player.ban", "functions", null],
          ["player.unban", "functions", null]
        ]
      )
    })
  )

  it.effect("writes, reads and deletes saves of a player, with the exact text of its data", () =>
    Effect.gen(function* () {
      const { development, player, url } = yield* setUp
      const path = `/v1/admin/players/${player.id}/saves/slot`
      const off = yield* call(development, "PUT", path, { data: 1 })
      assert.strictEqual(at(off.body, "error", "code"), "feature_disabled")
      yield* configure(development, { version: 1, features: { saves: true } })
      const written = yield* call(development, "PUT", path, { data: { a: [1, 2.5] } })
      assert.strictEqual(at(written.body, "version"), 1)
      const conflict = yield* call(development, "PUT", path, { data: 1, ifVersion: 7 })
      assert.strictEqual(at(conflict.body, "error", "code"), "version_conflict")
      const own = yield* request(`${url}/v1/saves/slot`, {
        headers: {
          "x-svc-key": development.publishableKey,
          authorization: `Bearer ${player.accessToken}`
        }
      })
      const theirs = yield* call(development, "GET", path)
      assert.deepStrictEqual(own.body, theirs.body)
      const list = yield* call(development, "GET", `/v1/admin/players/${player.id}/saves`)
      assert.strictEqual(at(list.body, "saves", 0, "key"), "slot")
      const stale = yield* call(development, "DELETE", `${path}?ifVersion=9`)
      assert.strictEqual(stale.status, 409)
      assert.strictEqual((yield* call(development, "DELETE", `${path}?ifVersion=1`)).status, 200)
    })
  )

  it.effect("reports stats, and reaches no endpoint that functions may not call", () =>
    Effect.gen(function* () {
      const { development, player } = yield* setUp
      yield* configure(development, {
        version: 1,
        features: { stats: true },
        stats: [{ key: "score", aggregation: "sum" }]
      })
      const path = `/v1/admin/players/${player.id}`
      const bad = yield* call(development, "POST", `${path}/stats`, { stats: {} })
      assert.strictEqual(at(bad.body, "error", "code"), "invalid_request")
      const sent = yield* call(development, "POST", `${path}/stats`, { stats: { score: 5 } })
      assert.strictEqual(at(sent.body, "stats", "score", "all"), 5)
      const refused = yield* call(development, "PUT", `${path}/age`, { band: "adult" })
      assert.deepStrictEqual(
        [refused.status, at(refused.body, "error", "code")],
        [404, "not_found"]
      )
      const unknown = yield* call(development, "GET", "/nothing")
      assert.strictEqual(unknown.status, 404)
      const nobody = yield* call(development, "GET", "/v1/admin/players/pl_none/saves")
      assert.strictEqual(nobody.status, 403)
    })
  )
})
