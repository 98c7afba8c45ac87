/** Requests with an `Idempotency-Key`, tested with stat reports. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { IdempotencyRepository } from "#sql/idempotency"
import { Idempotency } from "#server/platform/idempotency"
import { at } from "#testing/players"
import { buildAnother, addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"
import { type Ask, codeOf, newGame } from "../support/players.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const game = {
  features: { stats: true },
  integrity: { stats: { maxSubmitsPerMinute: 600 } },
  stats: [{ key: "coins" }, { key: "best", aggregation: "max", maxPerSubmit: 10 }]
}

const report = (ask: Ask, key: string, stats: object = { coins: 1 }) =>
  ask("POST", "/v1/stats", { stats }, { "idempotency-key": key })

const coins = (ask: Ask) =>
  Effect.map(ask("GET", "/v1/stats"), ({ body }) => at(body, "stats", "coins"))

layer(Node)("an Idempotency-Key", (it) => {
  it.effect(
    "returns the first response to a repeated Idempotency-Key, and counts nothing twice",
    () =>
      Effect.gen(function* () {
        const { player } = yield* newGame(game)
        const stats = { coins: 5, best: 11 }
        const first = yield* report(player.ask, "a:1", stats)
        assert.strictEqual(first.status, 200)
        yield* report(player.ask, "a:2", { coins: 1 })
        const again = yield* report(player.ask, "a:1", stats)
        assert.strictEqual(again.status, 200)
        assert.deepStrictEqual(again.body, first.body)
        assert.strictEqual(at(again.body, "stats", "coins", "all"), 5)
        assert.strictEqual(yield* coins(player.ask), 6)
      })
  )

  it.effect("refuses an Idempotency-Key with another body", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame(game)
      yield* report(player.ask, "k")
      const other = yield* report(player.ask, "k", { coins: 2 })
      assert.strictEqual(other.status, 422)
      assert.strictEqual(codeOf(other), "idempotency_key_reused")
      assert.strictEqual(yield* coins(player.ask), 1)
    })
  )

  it.effect("accepts keys of 1 to 128 characters of A-Z a-z 0-9 _ . : -", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame(game)
      for (const key of ["", " ", "a b", "a/b", "a,b", "x".repeat(129), "é"]) {
        const answer = yield* report(player.ask, key)
        assert.strictEqual(answer.status, 400, key)
        assert.strictEqual(codeOf(answer), "invalid_idempotency_key", key)
      }
      for (const key of ["a", "A.z_0:9-", "x".repeat(128)]) {
        assert.strictEqual((yield* report(player.ask, key)).status, 200, key)
      }
      assert.strictEqual(yield* coins(player.ask), 3)
    })
  )

  it.effect("scopes an Idempotency-Key to its caller", () =>
    Effect.gen(function* () {
      const { newPlayer, player } = yield* newGame(game)
      const other = yield* newPlayer
      yield* report(player.ask, "k", { coins: 3 })
      assert.strictEqual((yield* report(other.ask, "k", { coins: 4 })).status, 200)
      assert.strictEqual(yield* coins(other.ask), 4)
    })
  )

  it.effect(
    "runs a request once for 32 concurrent repeats of its Idempotency-Key on two nodes",
    () =>
      Effect.gen(function* () {
        const { player, url } = yield* newGame(game)
        const other = yield* buildAnother(nodeWith())
        const asks = [url, yield* Effect.provideContext(addressOfNode, other)].map(player.askAt)
        const answers = yield* Effect.forEach(
          Array.from({ length: 32 }, (_, index) => asks[index % 2] ?? player.ask),
          (ask) => report(ask, "once", { coins: 7 }),
          { concurrency: "unbounded" }
        )
        const done = answers.filter(({ status }) => status === 200)
        assert.isNotEmpty(done)
        for (const { body } of done) assert.strictEqual(at(body, "stats", "coins", "all"), 7)
        for (const answer of answers) {
          if (answer.status === 200) continue
          assert.strictEqual(answer.status, 409)
          assert.strictEqual(codeOf(answer), "idempotency_in_progress")
        }
        assert.strictEqual(yield* coins(player.ask), 7)
        assert.strictEqual((yield* report(player.ask, "once", { coins: 7 })).status, 200)
        assert.strictEqual(yield* coins(player.ask), 7)
      })
  )

  it.effect("accepts an Idempotency-Key again after the request failed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { player } = yield* newGame(game)
      assert.strictEqual((yield* report(player.ask, "k", { coins: "x" })).status, 400)
      yield* sql`alter table stats rename to stats_away`
      assert.strictEqual((yield* report(player.ask, "k")).status, 500)
      yield* sql`alter table stats_away rename to stats`
      assert.strictEqual((yield* report(player.ask, "k")).status, 200)
      assert.strictEqual(yield* coins(player.ask), 1)
    })
  )
})

layer(Node)("a report whose answer cannot be kept", (it) => {
  it.effect("counts nothing without a stored answer, so that a repeated report counts once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { player } = yield* newGame(game)
      yield* sql`alter table idempotency_keys add constraint refused check (key <> 'lost')`
      assert.strictEqual((yield* report(player.ask, "lost")).status, 500)
      assert.isUndefined(yield* coins(player.ask))
      yield* sql`alter table idempotency_keys drop constraint refused`
      assert.strictEqual((yield* report(player.ask, "lost")).status, 200)
      assert.strictEqual(yield* coins(player.ask), 1)
    })
  )
})

const Once = Idempotency.layer.pipe(
  Layer.provide(IdempotencyRepository.layer),
  Layer.provideMerge(Node)
)

layer(Once)("an answer", (it) => {
  it.effect("keeps an answer for 24 hours", () =>
    Effect.gen(function* () {
      const { once } = yield* Idempotency
      const sql = yield* SqlClient.SqlClient
      const { environmentId } = yield* newGame(game)
      let carriedOut = 0
      const count = Effect.sync(() => (carriedOut += 1))
      const named = { environmentId, caller: environmentId, path: "POST /count", key: "k" }
      const ask = once({ ...named, body: {} }, Schema.Int, Effect.succeed(count))
      assert.strictEqual(yield* ask, 1)
      const age = (hours: number) => sql`
        update idempotency_keys set created_at = created_at - make_interval(hours => ${hours}::int)
        where caller = ${environmentId}`
      yield* age(23)
      assert.strictEqual(yield* ask, 1)
      yield* age(1)
      assert.strictEqual(yield* ask, 2)
      assert.strictEqual(yield* ask, 2)
    })
  )

  it.effect("keeps an answer and its effect together or not at all", () =>
    Effect.gen(function* () {
      const { once } = yield* Idempotency
      const sql = yield* SqlClient.SqlClient
      const { environmentId } = yield* newGame(game)
      const named = { environmentId, caller: environmentId, path: "POST /name", key: "k" }
      const rename = sql`update projects set name = 'renamed' where id = (
        select project_id from environments where id = ${environmentId})`
      const failing = Effect.andThen(rename, Effect.fail("refused" as const))
      const ask = once({ ...named, body: {} }, Schema.Void, Effect.succeed(failing))
      assert.strictEqual(yield* Effect.flip(ask), "refused")
      const names = yield* sql`select p.name from projects p join environments e
        on e.project_id = p.id where e.id = ${environmentId}`
      assert.strictEqual(at(names, 0, "name"), "test")
      const done = yield* once(
        { ...named, body: {} },
        Schema.Int,
        Effect.succeed(Effect.succeed(1))
      )
      assert.strictEqual(done, 1)
    })
  )
})
