/**
 * Attacks on idempotency keys: concurrent requests with one key on two nodes, with equal and different bodies,
 * by other callers and after failures.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { IdempotencyRepository } from "#sql/idempotency"
import { Idempotency } from "#server/platform/idempotency"
import { at } from "#testing/players"
import { addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"
import { type Ask, codeOf, newGame } from "../support/players.ts"
import { passRateWindows } from "../support/rate-windows.ts"
import { sampleSize } from "../support/security/sizes.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const game = {
  features: { stats: true },
  stats: [{ key: "coins" }],
  integrity: { stats: { maxSubmitsPerMinute: 600 } }
}

const rounds = sampleSize(50, 2)
const parallel = 32

const report = (ask: Ask, key: string, coins: unknown) =>
  ask("POST", "/v1/stats", { stats: { coins } }, { "idempotency-key": key })

const total = (ask: Ask) =>
  Effect.map(ask("GET", "/v1/stats"), ({ body }) => at(body, "stats", "coins") ?? 0)

layer(Node, { timeout: "120 seconds" })("32 concurrent requests with one idempotency key", (it) => {
  it.effect(
    "gives concurrent requests with one key one effect and one response, every round",
    () =>
      Effect.gen(function* () {
        const { newPlayer, player, url } = yield* newGame(game)
        const stranger = yield* newPlayer
        const other = yield* Layer.build(Layer.fresh(nodeWith()))
        const senders = [url, yield* Effect.provideContext(addressOfNode, other)].map(player.askAt)
        let sum = 0
        for (let round = 0; round < rounds; round++) {
          yield* passRateWindows(5)
          const key = `round:${round}`
          // One body wins: most report 7, some 8, and some an invalid value.
          const bodies = Array.from({ length: parallel }, (_, index) =>
            index % 8 === 5 ? "broken" : index % 8 === 3 ? 8 : 7
          )
          const [answers, strangers] = yield* Effect.all(
            [
              Effect.forEach(
                bodies,
                (coins, index) =>
                  Effect.map(report(senders[index % 2] ?? player.ask, key, coins), (answer) => ({
                    ...answer,
                    coins
                  })),
                { concurrency: "unbounded" }
              ),
              report(stranger.ask, key, 1)
            ],
            { concurrency: 2 }
          )
          const done = answers.filter(({ status }) => status === 200)
          const [winner] = done
          assert.isDefined(winner)
          assert.include([7, 8], winner?.coins)
          sum += Number(winner?.coins)
          for (const { body, coins } of done) {
            assert.strictEqual(coins, winner?.coins, "only the winning body gets a response")
            assert.deepStrictEqual(body, winner?.body)
          }
          for (const answer of answers) {
            if (answer.status === 200) continue
            const code =
              answer.coins === "broken"
                ? ["invalid_request"]
                : answer.coins === winner?.coins
                  ? ["idempotency_in_progress"]
                  : ["idempotency_in_progress", "idempotency_key_reused"]
            assert.include(code, codeOf(answer))
          }
          assert.strictEqual(at(winner?.body, "stats", "coins", "all"), sum)
          assert.strictEqual(at(strangers.body, "stats", "coins", "all"), round + 1)
          assert.deepStrictEqual((yield* report(player.ask, key, winner?.coins)).body, winner?.body)
          const late = yield* report(player.ask, key, 9)
          assert.deepStrictEqual([late.status, codeOf(late)], [422, "idempotency_key_reused"])
        }
        assert.strictEqual(yield* total(player.ask), sum)
        assert.strictEqual(yield* total(stranger.ask), rounds)
      }),
    { timeout: 600_000, tags: "sized" }
  )
})

const Once = Idempotency.layer.pipe(
  Layer.provide(IdempotencyRepository.layer),
  Layer.provideMerge(Node)
)

layer(Once, { timeout: "30 seconds" })("an idempotency key", (it) => {
  it.effect("scopes a key to one caller and one endpoint, and frees it after a failure", () =>
    Effect.gen(function* () {
      const { once } = yield* Idempotency
      const { environmentId } = yield* newGame(game)
      let executions = 0
      const count = Effect.sync(() => (executions += 1))
      const named = { environmentId, caller: "ann", path: "POST /a", key: "k", body: {} }
      const ask = (request: Partial<typeof named>) =>
        once({ ...named, ...request }, Schema.Int, Effect.succeed(count))
      const failing = once(named, Schema.Int, Effect.succeed(Effect.fail("refused")))
      const dying = once(named, Schema.Int, Effect.succeed(Effect.die("broken")))
      for (let round = 0; round < 3; round++) {
        yield* Effect.flip(failing)
        yield* Effect.exit(dying)
      }
      assert.strictEqual(yield* ask({}), 1)
      assert.strictEqual(yield* ask({ caller: "ben" }), 2)
      assert.strictEqual(yield* ask({ path: "POST /b" }), 3)
      assert.strictEqual(yield* ask({ key: "x".repeat(128) }), 4)
      assert.strictEqual(yield* ask({}), 1)
      for (const key of ["x".repeat(129), "", "a b", "é", "a\n"]) {
        assert.strictEqual((yield* Effect.flip(ask({ key })))._tag, "invalid_idempotency_key")
      }
      assert.strictEqual(executions, 4)
    })
  )
})
