/** Cloud saves over HTTP: versions, limits and ownership. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { SaveRepository } from "#sql/saves"
import { at } from "#testing/players"
import { nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { codeOf, detailsOf, newGame } from "../../support/players.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const saves = { features: { saves: true } }

layer(Node)("saves", (it) => {
  it.effect("lists and reads a written save with version, size and time", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame(saves)
      const data = { level: 3, name: "Zoë", items: [1, null, { a: true }] }
      const item = {
        key: "slot-1",
        version: 1,
        size: Buffer.byteLength(JSON.stringify(data)),
        updatedAt: "1970-01-01T00:00:00.000Z"
      }
      const written = yield* player.ask("PUT", "/v1/saves/slot-1", { data })
      assert.strictEqual(written.status, 200)
      assert.deepStrictEqual(written.body, item)
      const read = yield* player.ask("GET", "/v1/saves/slot-1")
      assert.deepStrictEqual(read.body, { ...item, data })
      yield* TestClock.adjust("1 minute")
      yield* player.ask("PUT", "/v1/saves/a", { data: null })
      const list = yield* player.ask("GET", "/v1/saves")
      const later = "1970-01-01T00:01:00.000Z"
      assert.deepStrictEqual(list.body, {
        saves: [{ key: "a", version: 1, size: 4, updatedAt: later }, item]
      })
      assert.strictEqual((yield* player.ask("GET", "/v1/saves/a")).body.data, null)
    })
  )

  it.effect("rejects writes with an outdated ifVersion", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame(saves)
      const put = (data: unknown, ifVersion?: number) =>
        player.ask("PUT", "/v1/saves/s", ifVersion === undefined ? { data } : { data, ifVersion })
      const versionOf = ({ body }: { readonly body: unknown }) => at(body, "version")
      const missing = yield* put(1, 1)
      assert.strictEqual(missing.status, 409)
      assert.strictEqual(codeOf(missing), "version_conflict")
      assert.deepStrictEqual(detailsOf(missing), {
        currentVersion: 0,
        updatedAt: null,
        size: null
      })
      assert.strictEqual(versionOf(yield* put(1, 0)), 1)
      const [stored] = Object((yield* player.ask("GET", "/v1/saves")).body.saves)
      assert.deepStrictEqual(detailsOf(yield* put(1, 0)), {
        currentVersion: 1,
        updatedAt: stored.updatedAt,
        size: 1
      })
      assert.strictEqual(versionOf(yield* put(2, 1)), 2)
      assert.deepInclude(detailsOf(yield* put(3, 1)), { currentVersion: 2 })
      assert.deepInclude(detailsOf(yield* put(3, 9e15)), { currentVersion: 2 })
      assert.strictEqual(versionOf(yield* put(4)), 3)
      assert.strictEqual((yield* player.ask("GET", "/v1/saves/s")).body.data, 4)
    })
  )

  it.effect("continues the version when a deleted save is written again", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame(saves)
      const path = "/v1/saves/s"
      for (const data of [1, 2, 3]) yield* player.ask("PUT", path, { data })
      const conflict = yield* player.ask("DELETE", `${path}?ifVersion=2`)
      assert.strictEqual(conflict.status, 409)
      assert.deepInclude(detailsOf(conflict), { currentVersion: 3 })
      const deleted = yield* player.ask("DELETE", `${path}?ifVersion=3`)
      assert.strictEqual(deleted.status, 200)
      assert.deepStrictEqual(deleted.body, { deleted: true })
      for (const method of ["GET", "DELETE"]) {
        const gone = yield* player.ask(method, path)
        assert.strictEqual(gone.status, 404)
        assert.strictEqual(codeOf(gone), "save_not_found")
      }
      assert.deepStrictEqual((yield* player.ask("GET", "/v1/saves")).body, { saves: [] })
      const stale = yield* player.ask("PUT", path, { data: 4, ifVersion: 3 })
      assert.deepInclude(detailsOf(stale), { currentVersion: 0 })
      const again = yield* player.ask("PUT", path, { data: 4, ifVersion: 0 })
      assert.strictEqual(again.body.version, 4)
      assert.strictEqual((yield* player.ask("DELETE", path)).status, 200)
      assert.strictEqual((yield* player.ask("PUT", path, { data: 5 })).body.version, 5)
    })
  )

  it.effect("rejects invalid keys, versions and bodies", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame(saves)
      for (const key of [
        "-a",
        ".a",
        "a b",
        "%C3%A9",
        "a%2Fb",
        "a%00",
        "x".repeat(65),
        "x".repeat(1000),
        "__proto__"
      ]) {
        const answer = yield* player.ask("PUT", `/v1/saves/${key}`, { data: 1 })
        assert.strictEqual(answer.status, 400, key)
        assert.strictEqual(codeOf(answer), "invalid_request", key)
        assert.strictEqual(at(detailsOf(answer), "issues", 0, "path"), "params.key")
      }
      for (const key of ["x".repeat(64), "A", "0_.-", "constructor"]) {
        assert.strictEqual((yield* player.ask("PUT", `/v1/saves/${key}`, { data: 1 })).status, 200)
      }
      for (const [body, code, path] of [
        ["{}", "invalid_request", "data"],
        ["[]", "invalid_request", "body"],
        ['{"data":1,"ifVersion":-1}', "invalid_request", "ifVersion"],
        ['{"data":1,"ifVersion":1.5}', "invalid_request", "ifVersion"],
        ['{"data":1,"ifVersion":"1"}', "invalid_request", "ifVersion"],
        ['{"data":1,"ifVersion":null}', "invalid_request", "ifVersion"],
        ['{"data":1', "invalid_json", undefined],
        ['{"data":undefined}', "invalid_json", undefined],
        ['{"data":NaN}', "invalid_json", undefined],
        ["", "invalid_json", undefined]
      ] as const) {
        const answer = yield* player.ask("PUT", "/v1/saves/s", body)
        assert.strictEqual(answer.status, 400, body)
        assert.strictEqual(codeOf(answer), code, body)
        assert.strictEqual(at(detailsOf(answer), "issues", 0, "path"), path, body)
      }
      const form = yield* player.ask("PUT", "/v1/saves/s", "data=1", {
        "content-type": "application/x-www-form-urlencoded"
      })
      assert.strictEqual(form.status, 415)
      for (const query of ["?ifVersion=x", "?ifVersion=-1", "?ifVersion=1.5", "?ifVersion="]) {
        assert.strictEqual((yield* player.ask("DELETE", `/v1/saves/A${query}`)).status, 400, query)
      }
    })
  )

  it.effect("limits a save to 1 MiB of JSON, not counting white space", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame(saves)
      const limit = 1_048_576
      const put = (body: unknown) => player.ask("PUT", "/v1/saves/big", body)
      const full = "é".repeat((limit - 2) / 2)
      assert.strictEqual((yield* put({ data: full })).body.size, limit)
      assert.strictEqual((yield* player.ask("GET", "/v1/saves/big")).body.data, full)
      const over = yield* put({ data: `${full}x` })
      assert.strictEqual(over.status, 413)
      assert.strictEqual(codeOf(over), "save_too_large")
      assert.deepStrictEqual(detailsOf(over), { size: limit + 1, limit })
      const spaced = yield* put(`{ "data" : "${full}"${" ".repeat(60_000)}}`)
      assert.strictEqual(spaced.body.size, limit)
      const huge = yield* put({ data: "x".repeat(3 * limit) })
      assert.strictEqual(huge.status, 413)
      assert.strictEqual(codeOf(huge), "save_too_large")
      assert.isAbove(Number(at(detailsOf(huge), "size")), 3 * limit)
      assert.strictEqual((yield* player.ask("GET", "/v1/saves/big")).body.version, 2)
    })
  )

  it.effect("limits a player to 100 saves under concurrent writes", () =>
    Effect.gen(function* () {
      const { player } = yield* newGame(saves)
      const answers = yield* Effect.forEach(
        Array.from({ length: 120 }, (_, index) => index),
        (index) => player.ask("PUT", `/v1/saves/s${index % 110}`, { data: index }),
        { concurrency: 16 }
      )
      const list = yield* player.ask("GET", "/v1/saves")
      const keys = new Set(Array.from(Object(at(list.body, "saves")), (item) => at(item, "key")))
      assert.strictEqual(keys.size, 100)
      const refused = answers.filter(({ status }) => status !== 200)
      assert.isAtLeast(refused.length, 10)
      for (const answer of refused) {
        assert.strictEqual(codeOf(answer), "too_many_saves")
        assert.deepStrictEqual(detailsOf(answer), { limit: 100 })
      }
      const [kept] = keys
      // Existing saves remain writable, and a deletion frees a slot.
      assert.strictEqual((yield* player.ask("PUT", `/v1/saves/${kept}`, { data: 1 })).status, 200)
      assert.strictEqual((yield* player.ask("PUT", "/v1/saves/new", { data: 1 })).status, 409)
      assert.strictEqual((yield* player.ask("DELETE", `/v1/saves/${kept}`)).status, 200)
      assert.strictEqual((yield* player.ask("PUT", "/v1/saves/new", { data: 1 })).status, 200)
      const back = yield* player.ask("PUT", `/v1/saves/${kept}`, { data: 1 })
      assert.strictEqual(codeOf(back), "too_many_saves")
    })
  )

  it.effect("hides a save from other players", () =>
    Effect.gen(function* () {
      const { newPlayer, player } = yield* newGame(saves)
      const other = yield* newPlayer
      yield* player.ask("PUT", "/v1/saves/s", { data: "mine" })
      assert.strictEqual((yield* other.ask("GET", "/v1/saves/s")).status, 404)
      assert.strictEqual((yield* other.ask("DELETE", "/v1/saves/s")).status, 404)
      assert.deepStrictEqual((yield* other.ask("GET", "/v1/saves")).body, { saves: [] })
      const theirs = yield* other.ask("PUT", "/v1/saves/s", { data: "theirs", playerId: player.id })
      assert.strictEqual(theirs.body.version, 1)
      assert.strictEqual((yield* player.ask("GET", "/v1/saves/s")).body.data, "mine")
    })
  )

  it.effect(
    "answers feature_disabled to all requests for saves while they are off, even to malformed JSON",
    () =>
      Effect.gen(function* () {
        const { player } = yield* newGame({})
        for (const [method, path, body] of [
          ["GET", "/v1/saves", undefined],
          ["GET", "/v1/saves/s", undefined],
          ["PUT", "/v1/saves/s", "{"],
          ["DELETE", "/v1/saves/-", undefined]
        ] as const) {
          const answer = yield* player.ask(method, path, body)
          assert.strictEqual(answer.status, 403)
          assert.strictEqual(codeOf(answer), "feature_disabled")
          assert.deepStrictEqual(detailsOf(answer), {
            feature: "saves",
            configPath: "features.saves"
          })
        }
      })
  )

  it.effect("rejects writes of a deleted player", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { player } = yield* newGame(saves)
      yield* player.ask("PUT", "/v1/saves/s", { data: 1 })
      yield* sql`delete from players where id = ${player.id}`
      assert.strictEqual(codeOf(yield* player.ask("PUT", "/v1/saves/s", { data: 1 })), "not_found")
      assert.strictEqual(codeOf(yield* player.ask("GET", "/v1/saves/s")), "save_not_found")
      assert.lengthOf(yield* sql`select 1 from save_counts where player_id = ${player.id}`, 0)
    })
  )
})

layer(SaveRepository.layer.pipe(Layer.provideMerge(Node)))("deleted saves", (it) => {
  it.effect("sweeps deleted saves when there are many, and continues their versions", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* SaveRepository
      const { environmentId, player } = yield* newGame(saves)
      for (const data of [1, 2, 3]) yield* player.ask("PUT", "/v1/saves/old", { data })
      yield* player.ask("DELETE", "/v1/saves/old")
      yield* player.ask("PUT", "/v1/saves/kept", { data: 1 })
      const rowsLeft = Effect.map(
        sql`select key from saves where environment_id = ${environmentId}`,
        (found) => found.length
      )
      const soon = DateTime.add(yield* DateTime.now, { minutes: 1 })
      yield* Effect.andThen(rows.sweep(soon), rows.sweep(soon))
      assert.strictEqual(yield* rowsLeft, 2)
      yield* sql`update save_counts set deleted = 1001 where player_id = ${player.id}`
      yield* rows.sweep(soon)
      // A running write may not have seen the new floor yet.
      assert.strictEqual(yield* rowsLeft, 2)
      yield* rows.sweep(soon)
      assert.strictEqual(yield* rowsLeft, 1)
      const again = yield* player.ask("PUT", "/v1/saves/old", { data: 4, ifVersion: 0 })
      assert.strictEqual(again.body.version, 4)
    })
  )
})
