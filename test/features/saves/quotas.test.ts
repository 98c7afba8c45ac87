/** Storage quotas of saves: exact for a guest, and within ten seconds for an environment. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { at, type TestResponse } from "#testing/players"
import { addressOfNode, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { type Ask, codeOf, detailsOf, newGame } from "../../support/players.ts"

const quotas = { SVC_GUEST_SAVE_BYTES: "1000", SVC_ENVIRONMENT_SAVE_BYTES: "3000" }

const Node = nodeWith(quotas).pipe(Layer.provideMerge(SharedDatabase.layer))

const game = { features: { saves: true, emailLogin: true } }

/** Starts another node of the same database. */
const anotherNode = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>) {
  const node = yield* Layer.build(Layer.fresh(nodeWith(env)))
  return yield* Effect.provideContext(addressOfNode, node)
})

/** Writes a save of so many bytes of JSON. */
const put = (ask: Ask, key: string, bytes: number) =>
  ask("PUT", `/v1/saves/${key}`, { data: "x".repeat(bytes - 2) })

const assertRefused = (answer: TestResponse, limit: number, used: number) => {
  assert.strictEqual(answer.status, 409, JSON.stringify(answer.body))
  assert.strictEqual(codeOf(answer), "storage_quota_exceeded")
  assert.deepStrictEqual(detailsOf(answer), { limit, used })
}

const assertWritten = (answer: TestResponse) =>
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))

const link = (ask: Ask, email: string) =>
  Effect.map(
    ask("POST", "/v1/auth/link/email", { email, password: "correct horse" }),
    assertWritten
  )

/** The counted bytes of each player of an environment, and the bytes that there are. */
const bytesOf = Effect.fnUntraced(function* (environmentId: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`
    select c.bytes::int as counted,
      (select sum(size)::int from saves s where s.player_id = c.player_id) as stored
    from save_counts c where environment_id = ${environmentId} order by 1`
})

layer(Node)("the storage quota of a guest", (it) => {
  it.effect(
    "enforces a guest's storage quota exactly under 50 concurrent writes on two nodes",
    () =>
      Effect.gen(function* () {
        const { environmentId, player } = yield* newGame(game)
        const nodes = [player.ask, player.askAt(yield* anotherNode(quotas))]
        const answers = yield* Effect.forEach(
          Array.from({ length: 50 }, (_, index) => index),
          (index) => put(nodes[index % 2] ?? player.ask, `s${index}`, 90),
          { concurrency: "unbounded" }
        )
        const refused = answers.filter(({ status }) => status !== 200)
        assert.lengthOf(refused, 39)
        for (const answer of refused) assert.strictEqual(codeOf(answer), "storage_quota_exceeded")
        assert.deepStrictEqual(yield* bytesOf(environmentId), [{ counted: 990, stored: 990 }])
        const over = yield* put(player.ask, "last", 11)
        assertRefused(over, 1000, 990)
        assert.match(String(at(over.body, "error", "message")), /link a sign-in method/)
        assertWritten(yield* put(player.ask, "last", 10))
      })
  )

  it.effect("lets writes pass that make a save no larger, also beyond a lowered quota", () =>
    Effect.gen(function* () {
      const { environmentId, player } = yield* newGame(game)
      for (const key of ["a", "b", "c"]) assertWritten(yield* put(player.ask, key, 300))
      const lowered = player.askAt(yield* anotherNode({ SVC_GUEST_SAVE_BYTES: "100" }))
      assertWritten(yield* put(lowered, "a", 300))
      assertWritten(yield* put(lowered, "a", 200))
      assertRefused(yield* put(lowered, "a", 201), 100, 800)
      assertRefused(yield* put(lowered, "d", 2), 100, 800)
      const conditional = { data: "x".repeat(199), ifVersion: 3 }
      assertRefused(yield* lowered("PUT", "/v1/saves/a", conditional), 100, 800)
      assertWritten(yield* lowered("PUT", "/v1/saves/a", { ...conditional, data: 1 }))
      for (const key of ["b", "c"]) assertWritten(yield* lowered("DELETE", `/v1/saves/${key}`))
      assert.deepStrictEqual(yield* bytesOf(environmentId), [{ counted: 1, stored: 1 }])
      assertWritten(yield* put(lowered, "b", 99))
      assertRefused(yield* put(lowered, "c", 2), 100, 100)
    })
  )

  it.effect("lifts the storage quota of a guest who links a sign-in method", () =>
    Effect.gen(function* () {
      const { newPlayer, player } = yield* newGame(game)
      const other = yield* newPlayer
      assertRefused(yield* put(player.ask, "a", 1001), 1000, 0)
      yield* link(player.ask, "ada@example.com")
      assertWritten(yield* put(player.ask, "a", 1001))
      assertWritten(yield* put(player.ask, "b", 500))
      assertRefused(yield* put(other.ask, "a", 1001), 1000, 0)
    })
  )

  it.effect("counts what a runner of the release before writes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { environmentId, player } = yield* newGame(game)
      assertWritten(yield* put(player.ask, "a", 300))
      yield* sql`
        with put as (
          insert into saves as s (environment_id, player_id, key, version, data, size, updated_at, fresh)
          values (${environmentId}, ${player.id}, 'b', 1, '', 500, now(), true)
          on conflict (player_id, environment_id, key) do update set size = excluded.size
          returning s.fresh
        )
        insert into save_counts as c (environment_id, player_id, saves, most, deleted, floor)
        select ${environmentId}, ${player.id}, 1, 100, 0, 0 from put where fresh
        on conflict (player_id, environment_id) do update set saves = c.saves + 1`
      yield* sql`update saves set size = 400 where player_id = ${player.id} and key = 'a'`
      yield* sql`update saves set size = 600 where player_id = ${player.id} and key = 'a'`
      yield* sql`update saves set size = 400 where player_id = ${player.id} and key = 'a'`
      assert.deepStrictEqual(yield* bytesOf(environmentId), [{ counted: 900, stored: 900 }])
      assertRefused(yield* put(player.ask, "c", 101), 1000, 900)
    })
  )
})

layer(Node)("the storage quota of an environment", (it) => {
  it.effect("refuses growth only, and leaves other environments alone", () =>
    Effect.gen(function* () {
      const { environmentId, newPlayer, player } = yield* newGame(game)
      const elsewhere = yield* newGame(game)
      const other = yield* newPlayer
      yield* link(player.ask, "bob@example.com")
      assertWritten(yield* put(player.ask, "a", 2000))
      assertWritten(yield* put(other.ask, "a", 900))
      const over = yield* put(player.ask, "b", 101)
      assertRefused(over, 3000, 2900)
      assert.match(String(at(over.body, "error", "message")), /environment/)
      assertRefused(yield* put(other.ask, "a", 1000 + 1), 3000, 2900)
      assertWritten(yield* put(player.ask, "b", 100))
      assertRefused(yield* put(other.ask, "b", 2), 3000, 3000)
      assertWritten(yield* put(elsewhere.player.ask, "a", 1000))
      assertWritten(yield* put(player.ask, "a", 2000))
      assertWritten(yield* put(player.ask, "a", 1990))
      assertWritten(yield* put(other.ask, "b", 10))
      assertWritten(yield* player.ask("DELETE", "/v1/saves/b"))
      assertWritten(yield* put(other.ask, "b", 100))
      assertRefused(yield* put(other.ask, "b", 111), 3000, 2990)
      assert.deepStrictEqual(yield* bytesOf(environmentId), [
        { counted: 1000, stored: 1000 },
        { counted: 1990, stored: 1990 }
      ])
    })
  )

  it.effect("counts writes of another node into an environment's quota ten seconds later", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame(game)
      const there = player.askAt(yield* anotherNode(quotas))
      yield* link(player.ask, "eve@example.com")
      for (const ask of [player.ask, there]) assertWritten(yield* put(ask, "a", 10))
      assertWritten(yield* put(player.ask, "b", 2990))
      // The other node has a sum of 10 bytes.
      assertWritten(yield* put(there, "c", 2990))
      assertRefused(yield* put(there, "d", 10), 3000, 3000)
      yield* TestClock.adjust("10 seconds")
      for (const ask of [player.ask, there]) assertRefused(yield* put(ask, "d", 2), 3000, 5990)
      assertWritten(yield* player.ask("DELETE", "/v1/saves/b"))
      assertRefused(yield* put(there, "d", 2), 3000, 5990)
      yield* TestClock.adjust("10 seconds")
      assertRefused(yield* put(there, "d", 2), 3000, 3000)
      assertWritten(yield* player.ask("DELETE", "/v1/saves/c"))
      assertWritten(yield* put(player.ask, "d", 2))
    })
  )
})
