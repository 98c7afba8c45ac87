/** Exports of large players: read save by save as the client reads, and one at a time. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestApp } from "#testing/app"
import { at, configure, guest, type TestPlayer, type TestTarget } from "#testing/players"
import { appWithSql } from "../../support/devices.ts"
import { openRawConnection } from "../../support/malformed/raw-connection.ts"
import { operate, play } from "../../support/moderation-calls.ts"

const saveBytes = 1024 * 1024
const saveCount = 40

/** A guest with 40 saves of 1 MiB: more than the buffers of one connection hold. */
const largePlayer = Effect.gen(function* () {
  const app = yield* TestApp
  const sql = yield* SqlClient.SqlClient
  yield* configure(app, { features: { saves: true } })
  const player = yield* guest(app)
  yield* sql`
    insert into saves (environment_id, player_id, key, version, data, size, updated_at, fresh)
    select environment_id, id, 'save-' || to_char(n, 'FM00'), 1,
      '"' || repeat('x', ${saveBytes - 2}::int) || '"', ${saveBytes}::int, now(), true
    from players, generate_series(1, ${saveCount}::int) as n where id = ${player.id}`
  return player
})

/** Requests an export, and reads the beginning of the response only. */
const unreadExport = Effect.fnUntraced(function* (target: TestTarget, player: TestPlayer) {
  const connection = yield* openRawConnection(target.url)
  connection.send(
    `GET /v1/players/me/export HTTP/1.1\r\nHost: a\r\nX-Svc-Key: ${target.publishableKey}\r\n` +
      `Authorization: Bearer ${player.accessToken}\r\n\r\n`
  )
  yield* connection.begun
  return connection
})

layer(appWithSql({ SVC_THROTTLES: "on" }), { timeout: "120 seconds", excludeTestServices: true })(
  "large exports",
  (it) => {
    it.effect(
      "reads a save only when the client has read those before it",
      () =>
        Effect.gen(function* () {
          const app = yield* TestApp
          const sql = yield* SqlClient.SqlClient
          const player = yield* largePlayer
          const connection = yield* unreadExport(app, player)
          yield* sql`delete from saves where player_id = ${player.id} and key > 'save-30'`
          connection.resumeReading()
          yield* app.eventually(
            Effect.sync(() => connection.received.includes("\r\n0\r\n\r\n")),
            "the export ends"
          )
          const text = connection.received.toString("latin1")
          assert.include(text, '"save-10"')
          assert.notInclude(text, '"save-40"')
        }).pipe(Effect.scoped),
      { tags: "long" }
    )

    it.effect("refuses a second export of a player while the first is unread", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const player = yield* largePlayer
        const first = yield* unreadExport(app, player)
        const second = yield* play(app, player, "GET", "players/me/export")
        assert.strictEqual(at(second.body, "error", "code"), "rate_limited")
        assert.strictEqual(second.headers.get("retry-after"), "10")
        const third = yield* operate(app, "POST", `players/${player.id}/export`)
        assert.strictEqual(third.status, 429)
        first.reset()
        const last = yield* app.eventually(
          Effect.map(operate(app, "POST", `players/${player.id}/export`), (answer) =>
            answer.status === 200 ? answer : undefined
          ),
          "the export of the closed connection ends"
        )
        const saves = at(last.body, "saves")
        assert.strictEqual(Array.isArray(saves) ? saves.length : 0, saveCount)
      }).pipe(Effect.scoped)
    )

    it.effect("limits the exports of one player", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const player = yield* guest(app)
        const statuses: Array<number> = []
        for (let i = 0; i < 11; i++) {
          statuses.push((yield* play(app, player, "GET", "players/me/export")).status)
        }
        assert.deepStrictEqual(statuses, [...Array.from({ length: 10 }, () => 200), 429])
      })
    )
  }
)
