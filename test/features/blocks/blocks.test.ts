/** The list of a player's blocks over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { blockLimits } from "#rpc/blocks"
import { TestApp } from "#testing/app"
import { at, configure, guest, newPlayer, request, type TestTarget } from "#testing/players"
import { block, endBlock, putBlock } from "../../support/block-calls.ts"
import { appWithSql } from "../../support/devices.ts"
import { codeOf, play } from "../../support/moderation-calls.ts"
import { openRoom } from "../../support/opened-room.ts"

const unknown = `pl_${"0".repeat(26)}`

const idsOf = (body: unknown): ReadonlyArray<unknown> => {
  const blocks = at(body, "blocks")
  return Array.isArray(blocks) ? blocks.map((each) => at(each, "player", "id")) : []
}

/** The ids of the public rooms, with or without a player's token. */
const listRooms = Effect.fnUntraced(function* (target: TestTarget, accessToken?: string) {
  const { body, status } = yield* request(`${target.url}/v1/rooms`, {
    headers: {
      "x-svc-key": target.publishableKey,
      ...(accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` })
    }
  })
  assert.strictEqual(status, 200, JSON.stringify(body))
  const rooms = at(body, "rooms")
  return Array.isArray(rooms) ? rooms.map((room) => at(room, "id")) : []
})

layer(appWithSql({ SVC_THROTTLES: "off" }), {
  timeout: "120 seconds",
  excludeTestServices: true
})("the blocks of a player", (it) => {
  it.effect("lists blocks by page, newest first, with the names of the players", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app, "Ada")
      const others = [yield* guest(app, "Bob"), yield* guest(app, "Cat"), yield* guest(app, "Dan")]
      for (const other of others) yield* block(app, ada, other)
      const first = yield* play(app, ada, "GET", "social/blocks?limit=2")
      assert.strictEqual(first.status, 200, JSON.stringify(first.body))
      assert.strictEqual(at(first.body, "blocks", 0, "player", "displayName"), "Dan")
      const cursor = String(at(first.body, "nextCursor"))
      const second = yield* play(app, ada, "GET", `social/blocks?limit=2&cursor=${cursor}`)
      assert.strictEqual(at(second.body, "nextCursor"), null)
      assert.deepStrictEqual(
        [...idsOf(first.body), ...idsOf(second.body)],
        others.map(({ id }) => id).toReversed()
      )
    })
  )

  it.effect(
    "answers the same for known, unknown and foreign players and those blocked before",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const ada = yield* guest(app)
        const bob = yield* guest(app)
        const foreign = yield* guest(app.production)
        for (const id of [bob.id, bob.id, unknown, foreign.id]) {
          const added = yield* putBlock(app, ada, id)
          assert.deepStrictEqual([added.status, added.body], [200, {}])
        }
        const { body } = yield* play(app, ada, "GET", "social/blocks")
        assert.deepStrictEqual(idsOf(body), [bob.id])
        for (const id of [bob.id, bob.id, unknown, foreign.id]) {
          const ended = yield* endBlock(app, ada, id)
          assert.deepStrictEqual([ended.status, ended.body], [200, {}])
        }
        const after = yield* play(app, ada, "GET", "social/blocks")
        assert.deepStrictEqual(after.body, { blocks: [], nextCursor: null })
      })
  )

  it.effect("refuses a player who blocks itself, malformed ids and malformed cursors", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app)
      for (const answer of [
        yield* putBlock(app, ada, ada.id),
        yield* putBlock(app, ada, "bob"),
        yield* endBlock(app, ada, "bob"),
        yield* play(app, ada, "GET", "social/blocks?cursor=1"),
        yield* play(app, ada, "GET", "social/blocks?limit=0")
      ]) {
        assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "invalid_request"])
      }
    })
  )

  it.effect("refuses more blocks than the limit, also at once, for known and unknown players", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const sql = yield* SqlClient.SqlClient
      const [ada, bob] = [yield* guest(app), yield* guest(app)]
      const last = [yield* guest(app), yield* guest(app), yield* guest(app)]
      yield* sql`
        with filled as (
          insert into players (id, environment_id, display_name, is_guest, created_at)
          select 'pl_' || lpad(n::text, 26, '0'), p.environment_id, 'x', true, now()
          from players p, generate_series(1, ${blockLimits.perPlayer - 2}) n where p.id = ${bob.id}
          returning id, environment_id)
        insert into blocks (environment_id, player_id, blocked_id, created_at)
        select environment_id, ${ada.id}, id, now() from filled`
      yield* block(app, ada, bob)
      const answers = yield* Effect.forEach(last, ({ id }) => putBlock(app, ada, id), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(answers.map(codeOf).toSorted(), [
        "ok",
        "too_many_blocks",
        "too_many_blocks"
      ])
      assert.strictEqual(codeOf(yield* putBlock(app, ada, unknown)), "too_many_blocks")
      yield* block(app, ada, bob)
      yield* endBlock(app, ada, bob.id)
      yield* block(app, ada, bob)
    })
  )

  it.effect("exports the player's own blocks, and neither export names who has blocked it", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const [ada, bob] = [yield* guest(app), yield* guest(app)]
      yield* block(app, ada, bob)
      const own = yield* play(app, ada, "GET", "players/me/export")
      const others = yield* play(app, bob, "GET", "players/me/export")
      assert.deepStrictEqual(idsOf(own.body), [bob.id])
      assert.notInclude(JSON.stringify(others.body), ada.id)
    })
  )

  it.effect("works for players of an environment without any feature", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const target = app.production
      yield* configure(target, { features: {} })
      const [ada, bob] = [yield* guest(target), yield* guest(target)]
      yield* block(target, ada, bob)
      assert.deepStrictEqual(idsOf((yield* play(target, ada, "GET", "social/blocks")).body), [
        bob.id
      ])
    })
  )

  it.effect("leaves the rooms of a host who has blocked the reader out of the list", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const [ada, bob] = [yield* newPlayer(app), yield* newPlayer(app)]
      const { code, roomId } = yield* openRoom([ada])
      yield* block(app, ada, bob)
      assert.include(yield* listRooms(app), roomId)
      assert.include(yield* listRooms(app, ada.accessToken), roomId)
      assert.notInclude(yield* listRooms(app, bob.accessToken), roomId)
      const none = yield* bob.socket.request({ t: "join", code: "BBBBBB" })
      assert.deepStrictEqual(
        at(yield* bob.socket.request({ t: "join", code }), "error"),
        at(none, "error")
      )
    })
  )
})
