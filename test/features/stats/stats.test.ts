/** Stats over HTTP: aggregation, periods, rejections and limits. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { at } from "#testing/players"
import { buildAnother, addressOfNode, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { codeOf, detailsOf, type GamePlayer, newGame } from "../../support/players.ts"
import { passRateWindows } from "../../support/rate-windows.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const game = {
  features: { stats: true },
  integrity: { stats: { maxSubmitsPerMinute: 600 } },
  stats: [
    { key: "kills", maxPerSubmit: 100 },
    { key: "best", aggregation: "max" },
    { key: "fastest", aggregation: "min" },
    { key: "level", aggregation: "latest" }
  ]
}

const report = (player: GamePlayer, stats: unknown) => player.ask("POST", "/v1/stats", { stats })

const allTime = (player: GamePlayer) =>
  Effect.map(player.ask("GET", "/v1/stats"), ({ body }) => body.stats)

layer(Node)("stats", (it) => {
  it.effect("aggregates stats as configured in every period", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame(game)
      assert.deepStrictEqual(yield* allTime(player), {})
      const first = yield* report(player, { kills: 3, best: 10, fastest: 50, level: 2 })
      assert.strictEqual(first.status, 200)
      const same = (value: number) => ({ all: value, daily: value, weekly: value, monthly: value })
      assert.deepStrictEqual(first.body, {
        stats: { kills: same(3), best: same(10), fastest: same(50), level: same(2) },
        rejected: [],
        unlocked: []
      })
      const second = yield* report(player, { kills: 2, best: 7, fastest: 40, level: 1 })
      assert.deepStrictEqual(second.body.stats, {
        kills: same(5),
        best: same(10),
        fastest: same(40),
        level: same(1)
      })
      assert.deepStrictEqual(yield* allTime(player), { kills: 5, best: 10, fastest: 40, level: 1 })
    })
  )

  it.effect("restarts stats with the day, the week and the month of the time zone", () =>
    Effect.gen(function* () {
      // The zone is an hour behind UTC: the test starts on Wednesday, 31 December 1969, at 23:00.
      const { newPlayer } = yield* newGame({ ...game, resetTimeZone: "Etc/GMT+1" })
      yield* TestClock.adjust("55 minutes")
      const player = yield* newPlayer
      const kills = (value: number) =>
        Effect.map(report(player, { kills: value }), ({ body }) => body.stats.kills)
      assert.deepStrictEqual(yield* kills(1), { all: 1, daily: 1, weekly: 1, monthly: 1 })
      yield* TestClock.adjust("4 minutes")
      assert.deepStrictEqual(yield* kills(2), { all: 3, daily: 3, weekly: 3, monthly: 3 })
      yield* TestClock.adjust("1 minute")
      // A new day and a new month, in the same week.
      assert.deepStrictEqual(yield* kills(4), { all: 7, daily: 4, weekly: 7, monthly: 4 })
    })
  )

  it.effect("counts a report from a node with a slow clock in the current period", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { player } = yield* newGame(game)
      yield* report(player, { kills: 1 })
      yield* sql`update stats set day = day + 1, week = week + 7, month = '1970-02-01'
        where player_id = ${player.id}`
      const late = yield* report(player, { kills: 2 })
      assert.deepStrictEqual(late.body.stats.kills, {
        all: 3,
        daily: 3,
        weekly: 3,
        monthly: 3
      })
    })
  )

  it.effect("returns a rejected value with its reason and stores the others", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame({
        ...game,
        features: { stats: true, statsVerification: true },
        integrity: {
          stats: { maxSubmitsPerMinute: 600, rules: [{ stat: "best", min: 0, max: 50 }] }
        }
      })
      const answer = yield* report(player, { kills: 101, best: 51, level: 4, nothing: 1 })
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(answer.body.rejected, [
        { stat: "kills", value: 101, reason: "above_max_per_submit" },
        { stat: "best", value: 51, reason: "above_max" },
        { stat: "nothing", value: 1, reason: "unknown_stat" }
      ])
      assert.deepStrictEqual(Object.keys(Object(answer.body.stats)), ["level"])
      const none = yield* report(player, { best: -1 })
      assert.strictEqual(none.status, 200)
      assert.deepStrictEqual(none.body, {
        stats: {},
        rejected: [{ stat: "best", value: -1, reason: "below_min" }],
        unlocked: []
      })
      assert.deepStrictEqual(yield* allTime(player), { level: 4 })
    })
  )

  it.effect("stores rejected values for the operator", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { environmentId, player } = yield* newGame(game)
      yield* report(player, { kills: 101, level: 1, nothing: 2 })
      const signals = yield* sql`
        select player_id, stat, value, reason from stat_signals
        where environment_id = ${environmentId}`
      assert.deepStrictEqual(signals, [
        { playerId: player.id, stat: "kills", value: 101, reason: "above_max_per_submit" }
      ])
    })
  )

  it.effect("accepts 1 to 64 finite numbers per report, all or nothing", () =>
    Effect.gen(function* () {
      const keys = Array.from({ length: 65 }, (_, index) => `s${index}`)
      const { player } = yield* newGame({ ...game, stats: keys.map((key) => ({ key })) })
      const many = (count: number) =>
        Object.fromEntries(keys.slice(0, count).map((key) => [key, 1]))
      const full = yield* report(player, many(64))
      assert.strictEqual(full.status, 200)
      assert.lengthOf(Object.keys(Object(full.body.stats)), 64)
      const bad = [
        '{"s0":"1"}',
        '{"s0":null}',
        '{"s0":1e999}',
        '{"s0":[1]}',
        "[]",
        "7",
        '{"s0":true}'
      ]
      for (const body of ["{}", ...bad.map((stats) => `{"stats":${stats}}`)]) {
        const answer = yield* player.ask("POST", "/v1/stats", body)
        assert.strictEqual(answer.status, 400, body)
        assert.strictEqual(codeOf(answer), "invalid_request", body)
      }
      const hostile = yield* player.ask("POST", "/v1/stats", '{"stats":{"__proto__":1,"s0":0}}')
      assert.deepStrictEqual(Object.keys(Object(hostile.body.stats)), ["s0"])
      assert.strictEqual((yield* report(player, many(65))).status, 400)
      assert.strictEqual((yield* report(player, {})).status, 400)
      assert.strictEqual((yield* report(player, { s0: 5, s1: "x" })).status, 400)
      assert.strictEqual(at(yield* allTime(player), "s0"), 1)
    })
  )

  it.effect("counts each of many concurrent reports on two nodes once", () =>
    Effect.gen(function* () {
      const { player, url } = yield* newGame(game)
      const other = yield* buildAnother(nodeWith())
      const there = yield* Effect.provideContext(addressOfNode, other)
      const asks = [player.askAt(url), player.askAt(there)]
      yield* Effect.forEach(
        Array.from({ length: 60 }, (_, index) => index),
        (index) => {
          const stats = index % 3 === 0 ? { kills: 1, best: index } : { best: index, kills: 1 }
          const ask = asks[index % 2] ?? player.ask
          return Effect.map(ask("POST", "/v1/stats", { stats }), ({ status }) =>
            assert.strictEqual(status, 200)
          )
        },
        { concurrency: 16 }
      )
      assert.deepStrictEqual(yield* allTime(player), { best: 59, kills: 60 })
    })
  )

  it.effect("aggregates all reports, also when the config's aggregation changes", () =>
    Effect.gen(function* () {
      const { newPlayer } = yield* newGame({
        ...game,
        stats: game.stats.map(({ maxPerSubmit: _, ...it }) => it)
      })
      const value = fc.integer({ min: -1000, max: 1000 })
      const reports = fc.array(
        fc.record(
          { kills: value, best: value, fastest: value, level: value },
          { requiredKeys: [] }
        ),
        { minLength: 1, maxLength: 12 }
      )
      for (const history of fc.sample(reports, { numRuns: 12, seed: 7 })) {
        const player = yield* newPlayer
        for (const stats of history) {
          if (Object.keys(stats).length > 0) yield* report(player, stats)
        }
        const of = (key: "kills" | "best" | "fastest" | "level") =>
          history.flatMap((stats) => stats[key] ?? [])
        const expected = {
          kills: of("kills").reduce((sum, next) => sum + next, 0),
          best: Math.max(...of("best")),
          fastest: Math.min(...of("fastest")),
          level: of("level").at(-1)
        }
        const present = Object.entries(expected).filter(([key]) =>
          history.some((stats) => key in stats)
        )
        assert.deepStrictEqual(yield* allTime(player), Object.fromEntries(present))
      }
    })
  )

  it.effect("disables stats by default and keeps them private to the player", () =>
    Effect.gen(function* () {
      const { player: stranger } = yield* newGame({})
      const off = yield* stranger.ask("POST", "/v1/stats", "{")
      assert.strictEqual(off.status, 403)
      assert.deepStrictEqual(detailsOf(off), { feature: "stats", configPath: "features.stats" })
      assert.strictEqual((yield* stranger.ask("GET", "/v1/stats")).status, 403)
      const { newPlayer, player } = yield* newGame(game)
      yield* report(player, { kills: 1 })
      assert.deepStrictEqual(yield* allTime(yield* newPlayer), {})
    })
  )

  it.effect("rejects reports of a deleted player", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { player } = yield* newGame(game)
      yield* sql`delete from players where id = ${player.id}`
      assert.strictEqual(codeOf(yield* report(player, { kills: 1 })), "unauthorized")
      assert.strictEqual(codeOf(yield* report(player, { kills: 101 })), "unauthorized")
    })
  )
})

layer(Node)("sums out of range", (it) => {
  it.effect("rejects a value whose sum no double holds, and stores the others", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { player } = yield* newGame({
        ...game,
        stats: [{ key: "sum" }, { key: "other" }, { key: "last", aggregation: "latest" }]
      })
      const largest = Number.MAX_VALUE
      yield* report(player, { sum: largest, last: largest })
      const { body } = yield* report(player, { sum: 1e300, other: 1, last: largest })
      assert.deepStrictEqual(body.rejected, [{ stat: "sum", value: 1e300, reason: "overflow" }])
      assert.deepStrictEqual(yield* allTime(player), { sum: largest, other: 1, last: largest })
      assert.deepStrictEqual(
        yield* sql`select stat, reason from stat_signals where player_id = ${player.id}`,
        [{ stat: "sum", reason: "overflow" }]
      )
      // Sums that round to the largest double, and one that leads away from it.
      for (const sum of [1, Number.MIN_VALUE, -0, 9e291, -largest]) {
        assert.deepStrictEqual((yield* report(player, { sum })).body.rejected, [], `${sum}`)
      }
      assert.deepStrictEqual(yield* allTime(player), { sum: 0, other: 1, last: largest })
    })
  )

  it.effect("rejects a value whose sum of the day no double holds", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame({ ...game, stats: [{ key: "sum" }] })
      const largest = Number.MAX_VALUE
      yield* report(player, { sum: -largest })
      const sql = yield* SqlClient.SqlClient
      yield* sql`update stats set day = day - 1 where player_id = ${player.id}`
      assert.deepStrictEqual((yield* report(player, { sum: largest })).body.rejected, [])
      const { body } = yield* report(player, { sum: largest })
      assert.deepStrictEqual(body.rejected, [{ stat: "sum", value: largest, reason: "overflow" }])
    })
  )

  it.effect("rejects a sum that no double holds among concurrent reports of other players", () =>
    Effect.gen(function* () {
      const { newPlayer } = yield* newGame({ ...game, stats: [{ key: "sum" }] })
      const players = yield* Effect.forEach(Array.from({ length: 12 }), () => newPlayer, {
        concurrency: 4
      })
      const all = (values: (index: number) => number) =>
        Effect.forEach(
          players,
          (player, index) =>
            Effect.map(report(player, { sum: values(index) }), ({ body }) => body.rejected),
          { concurrency: "unbounded" }
        )
      yield* all((index) => (index === 5 ? Number.MAX_VALUE : 1))
      const rejected = yield* all(() => 1e308)
      const overflow = [{ stat: "sum", value: 1e308, reason: "overflow" as const }]
      assert.deepStrictEqual(
        rejected,
        players.map((_, index) => (index === 5 ? overflow : []))
      )
    })
  )
})

layer(Node)("the rate limit of reports", (it) => {
  it.effect("takes the rate limit of reports from the config, for all nodes together", () =>
    Effect.gen(function* () {
      const { newPlayer, player, url } = yield* newGame({
        ...game,
        integrity: { stats: { maxSubmitsPerMinute: 5 } }
      })
      const other = yield* buildAnother(nodeWith())
      const there = player.askAt(yield* Effect.provideContext(addressOfNode, other))
      const here = player.askAt(url)
      const submit = (ask: GamePlayer["ask"]) => ask("POST", "/v1/stats", { stats: { kills: 1 } })
      for (const ask of [here, there, here, there, here]) {
        assert.strictEqual((yield* submit(ask)).status, 200)
      }
      for (const ask of [there, here]) {
        const refused = yield* submit(ask)
        assert.strictEqual(refused.status, 429)
        assert.strictEqual(codeOf(refused), "rate_limited")
        assert.closeTo(Number(refused.headers.get("retry-after")), 60, 9)
      }
      assert.deepStrictEqual(yield* allTime(player), { kills: 5 })
      const retried = yield* newPlayer
      for (let attempt = 0; attempt < 8; attempt++) {
        const key = { "idempotency-key": "one" }
        const answer = yield* retried.ask("POST", "/v1/stats", { stats: { kills: 1 } }, key)
        assert.strictEqual(answer.status, 200, "retries of one report count once")
      }
      assert.deepStrictEqual(yield* allTime(retried), { kills: 1 })
      const another = yield* newPlayer
      assert.strictEqual((yield* submit(another.ask)).status, 200)
      yield* passRateWindows(50)
      assert.strictEqual((yield* submit(there)).status, 429)
      yield* passRateWindows(10)
      assert.strictEqual((yield* submit(there)).status, 200)
    })
  )
})
