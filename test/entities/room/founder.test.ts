/**
 * Creator of a room that disconnects during the insert. A batched insert cannot be interrupted, so
 * the row is written for a room that no player knows; the room must be removed.
 */
import { assert, layer } from "@effect/vitest"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { TestApp, TestDatabase } from "#testing/app"
import { newPlayer } from "#testing/players"
import { DatabaseLive } from "../../support/service.ts"

const Live = Layer.provideMerge(TestApp.layerWith(), DatabaseLive)

layer(Live, { timeout: "120 seconds" })("a creator who disconnects", (it) => {
  it.effect("leaves no room behind when the creator disconnects during the insert", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { url } = yield* TestDatabase
      const open = PgConnection.make({ url: Redacted.make(url) })
      const holder = yield* open
      const watcher = yield* open
      const rooms = Effect.map(watcher.query("select id from rooms"), ({ rows }) => rows.length)
      yield* holder.query("begin")
      yield* holder.query(`
        insert into rooms
        select 'rm_held' || id, id, 0, 'nod_0', 'HELD', 'default', false, false, 0, 1, '{}', now(),
          'infinity', '{}', '{}' from environments`)
      const creator = yield* newPlayer(app)
      yield* creator.socket.send({ t: "create", rid: "create", mode: "default", code: "HELD" })
      yield* app.eventually(
        Effect.map(
          watcher.query(`
            select 1 from pg_stat_activity where datname = current_database()
              and wait_event_type = 'Lock' and query like '%insert into rooms%'`),
          ({ rows }) => rows.length > 0
        ),
        "the insert of the room waits for a lock"
      )
      yield* creator.socket.close()
      const again = yield* app.online(creator)
      yield* again.socket.next("welcome")
      yield* holder.query("rollback")
      yield* app.eventually(
        Effect.map(rooms, (count) => count === 1),
        "the room is inserted"
      )
      yield* app.eventually(
        Effect.gen(function* () {
          yield* TestClock.adjust("1 second")
          return (yield* rooms) === 0
        }),
        "the room is removed"
      )
      assert.strictEqual((yield* again.socket.request({ t: "create", mode: "default" })).t, "reply")
    })
  )
})
