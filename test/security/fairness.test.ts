/**
 * Fairness between tenants: one environment at a shared bound delays itself only. And a check that the
 * service has no capacity to run has not passed.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { outgoing } from "#rpc/limits"
import { type Answer, at } from "#testing/players"
import { nodeWith, SharedDatabase } from "../support/http/stack.ts"
import { codeOf, type GamePlayer, newGame } from "../support/players.ts"
import { developersServer, gameWith, json, type Reply } from "../support/webhook.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const report = ({ ask }: GamePlayer, value: number) =>
  ask("POST", "/v1/stats", { stats: { best: value } })

/** Rejects after 250 ms; `most` is the largest number of reports of one player at a time. */
const slowRejection = () => {
  const open = new Map<string, number>()
  const seen = { most: 0 }
  const reply: Reply = (response, { body }) => {
    const player = String(at(JSON.parse(body), "playerId"))
    open.set(player, (open.get(player) ?? 0) + 1)
    seen.most = Math.max(seen.most, ...open.values())
    setTimeout(() => {
      open.set(player, (open.get(player) ?? 0) - 1)
      response.end(JSON.stringify({ approve: false }))
    }, 250)
  }
  return { reply, seen }
}

const silent: Reply = () => undefined

const hasStored = ({ body }: Answer): boolean => at(body, "stats", "best") !== undefined

const manyPlayers = (newPlayer: Effect.Effect<GamePlayer>, count: number) =>
  Effect.forEach(Array.from({ length: count }), () => newPlayer, { concurrency: 4 })

layer(Node, { excludeTestServices: true })("webhooks", (it) => {
  it.effect("stores no forged value, however many reports come at once", () =>
    Effect.gen(function* () {
      const { reply, seen } = slowRejection()
      const { url } = yield* developersServer(reply)
      const { newPlayer } = yield* newGame(gameWith({ url }))
      const cheaters = yield* manyPlayers(newPlayer, 12)
      const answers = yield* Effect.forEach(
        cheaters.flatMap((cheater) => Array.from({ length: 58 }, (_, n) => report(cheater, n))),
        (sent) => sent,
        { concurrency: "unbounded" }
      )
      assert.strictEqual(answers.filter(hasStored).length, 0)
      const codes = new Set(answers.filter(({ status }) => status !== 200).map(codeOf))
      assert.deepStrictEqual([...codes], ["rate_limited"])
      assert.strictEqual(seen.most, 1, "reports of one player at a time")
    })
  )

  it.effect("answers 503, and does not accept, beyond the reports that one game may verify", () =>
    Effect.gen(function* () {
      const { url } = yield* developersServer(silent)
      const { newPlayer } = yield* newGame(gameWith({ url, timeoutMs: 5000 }))
      const { permitsPerKey } = outgoing.webhooks
      const players = yield* manyPlayers(newPlayer, permitsPerKey)
      const held = yield* Effect.forkChild(
        Effect.forEach(players, (player) => report(player, 1), { concurrency: "unbounded" })
      )
      const last = yield* newPlayer
      const answer = yield* report(last, 1)
      assert.strictEqual(answer.status, 503)
      assert.strictEqual(codeOf(answer), "unavailable")
      yield* Fiber.interrupt(held)
    })
  )

  it.effect("calls the webhook of one game while that of another hangs for all its players", () =>
    Effect.gen(function* () {
      const hanging = yield* developersServer(silent)
      const { newPlayer } = yield* newGame(gameWith({ url: hanging.url, timeoutMs: 5000 }))
      const players = yield* manyPlayers(newPlayer, 40)
      const flood = yield* Effect.forkChild(
        Effect.forEach(
          players.flatMap((player) => Array.from({ length: 30 }, (_, n) => report(player, n))),
          (sent) => sent,
          { concurrency: "unbounded" }
        )
      )
      const { heard, url } = yield* developersServer(json({ approve: false }))
      const { player: other } = yield* newGame(gameWith({ url }))
      while (hanging.heard.length < 40) yield* Effect.sleep(10)
      for (let n = 1; n <= 5; n++) {
        const answer = yield* report(other, n)
        assert.strictEqual(answer.status, 200)
        assert.isFalse(hasStored(answer))
        assert.lengthOf(heard, n)
      }
      yield* Fiber.interrupt(flood)
    })
  )
})
