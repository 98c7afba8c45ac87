/** Concurrent saves and stats of many players: batched statements keep the players' data apart. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { at } from "#testing/players"
import { nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { codeOf, type GamePlayer, newGame } from "../../support/players.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const all = { concurrency: "unbounded" } as const

/** Texts that a batched statement must store unchanged. */
const odd = ["\u0000", '"\\', "Zoë 🎲", { "a b": [null, 1e300, -0.5] }, "\\u0000", "{}"]

const makeCrowd = Effect.fnUntraced(function* (document: object, count = 24) {
  const game = yield* newGame(document)
  const players = yield* Effect.all(Array.from({ length: count }, () => game.newPlayer))
  return { ...game, players }
})

const putAll = (players: ReadonlyArray<GamePlayer>, data: (index: number) => unknown) =>
  Effect.forEach(
    players,
    (player, index) => player.ask("PUT", "/v1/saves/s", { data: data(index) }),
    all
  )

layer(Node)("batched writes", (it) => {
  it.effect("stores each player's own save of a batch and increments its version", () =>
    Effect.gen(function* () {
      const { players } = yield* makeCrowd({ features: { saves: true } })
      const dataOf = (round: number) => (index: number) => [odd[index % odd.length], index, round]
      for (const round of [1, 2, 3]) {
        const answers = yield* putAll(players, dataOf(round))
        for (const answer of answers) {
          assert.strictEqual(answer.body.version, round, JSON.stringify(answer.body))
        }
      }
      for (const [index, player] of players.entries()) {
        const read = yield* player.ask("GET", "/v1/saves/s")
        assert.deepStrictEqual(at(read.body, "data"), dataOf(3)(index))
        if (index % 2 === 0) yield* player.ask("DELETE", "/v1/saves/s")
      }
      const again = yield* putAll(players, dataOf(4))
      assert.isTrue(again.every((answer) => answer.body.version === 4))
    })
  )

  it.effect("reads each player's own save of a batch, small or large", () =>
    Effect.gen(function* () {
      const { players } = yield* makeCrowd({ features: { saves: true } })
      // As JSON text up to the bound of shared reads, one byte above it, and far above.
      const sizes = [16_384, 16_385, 200_000]
      const dataOf = (index: number) =>
        "x".repeat((sizes[index % 4] ?? 100) - 8 - 2) + `${index}`.padStart(8)
      yield* putAll(players, dataOf)
      const [, second] = players
      if (second === undefined) return assert.fail("Expected two players")
      yield* second.ask("DELETE", "/v1/saves/s")
      const reads = players.flatMap((player) =>
        ["s", "t"].map((key) => player.ask("GET", `/v1/saves/${key}`))
      )
      const answers = yield* Effect.all(reads, all)
      for (const [index, answer] of answers.entries()) {
        const player = Math.floor(index / 2)
        if (index % 2 === 1 || player === 1) {
          assert.deepStrictEqual([answer.status, codeOf(answer)], [404, "save_not_found"])
        } else {
          assert.strictEqual(answer.body.data, dataOf(player), `player ${player}`)
          assert.deepStrictEqual(Object.keys(answer.body as object).toSorted(), [
            "data",
            "key",
            "size",
            "updatedAt",
            "version"
          ])
        }
      }
    })
  )

  it.effect("stores the other writes of a batch when one player is refused", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { players } = yield* makeCrowd({ features: { saves: true } })
      const [full, gone] = players
      if (full === undefined || gone === undefined) return assert.fail("Expected two players")
      for (let index = 0; index < 100; index++) {
        yield* full.ask("PUT", `/v1/saves/s${index}`, { data: index })
      }
      // The node has just seen the player, so the batch is the first to miss it.
      yield* gone.ask("GET", "/v1/players/me")
      yield* sql`delete from players where id = ${gone.id}`
      const answers = yield* putAll(players, (index) => index)
      assert.deepStrictEqual(
        answers.slice(0, 3).map((answer) => (answer.status === 200 ? "ok" : codeOf(answer))),
        ["too_many_saves", "not_found", "ok"]
      )
      assert.isTrue(answers.slice(2).every((answer) => answer.body.version === 1))
    })
  )

  it.effect("stores each player's own stats and rejected values of a batch", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { environmentId, players } = yield* makeCrowd({
        features: { stats: true },
        stats: [
          { key: "kills", maxPerSubmit: 50 },
          { key: "best", aggregation: "max" }
        ]
      })
      const gone = players.at(-1)
      // The node has just seen the player, so the batch is the first to miss it.
      yield* gone?.ask("GET", "/v1/players/me") ?? Effect.void
      yield* sql`delete from players where id = ${gone?.id ?? ""}`
      const reportAll = Effect.forEach(
        players,
        ({ ask }, index) =>
          ask("POST", "/v1/stats", { stats: { kills: index * 3, best: index + 1 } }),
        all
      )
      yield* reportAll
      const answers = yield* reportAll
      for (const [index, answer] of answers.entries()) {
        const highest = index + 1
        const best = { all: highest, daily: highest, weekly: highest, monthly: highest }
        const sum = index * 6
        const kills = { all: sum, daily: sum, weekly: sum, monthly: sum }
        const stats = index * 3 > 50 ? { best } : { best, kills }
        if (players[index] === gone) assert.strictEqual(codeOf(answer), "not_found")
        else assert.deepStrictEqual(answer.body.stats, stats)
      }
      const signals = yield* sql`
        select player_id, count(*)::int as count from stat_signals
        where environment_id = ${environmentId} group by player_id`
      const rejected = players.slice(17, -1).map(({ id }) => ({ playerId: id, count: 2 }))
      assert.sameDeepMembers([...signals], rejected)
    })
  )
})
