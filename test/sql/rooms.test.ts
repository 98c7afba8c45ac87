/** Rows of rooms: writes to a database that does not reply, and rows lost in a crash. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { isRefused, poolLayer } from "#sql/database"
import { RoomRepository } from "#sql/rooms"
import { toRow } from "#entities/room/snapshot"
import { proxyTo } from "../support/http/raw.ts"
import { SharedDatabase } from "../support/http-stack.ts"
import { emptyRoom, start } from "../support/room-harness.ts"
import { whileTimePasses } from "../support/passing-time.ts"

const row = toRow(emptyRoom(), 1, "nod_1", start)
const snapshot = { ...row, since: row.epoch, writeNumber: 1 }

/** The rows, and a crash that empties what is not logged. */
const database = Effect.gen(function* () {
  const url = yield* SharedDatabase
  const services = yield* Layer.build(
    RoomRepository.layer.pipe(Layer.provideMerge(poolLayer({ url, connections: 1 })))
  )
  const sql = Context.get(services, SqlClient.SqlClient)
  const crash = Effect.all([sql`delete from rooms`, sql`delete from rooms_begun`])
  return { crash, rows: Context.get(services, RoomRepository), sql }
})

layer(SharedDatabase.layer)("a snapshot", (it) => {
  it.effect(
    "fails a snapshot in time on a dead connection, and writes the next on another",
    () =>
      Effect.gen(function* () {
        const address = new URL(Redacted.value(yield* SharedDatabase))
        const proxy = yield* proxyTo(Number(address.port))
        address.port = `${proxy.port}`
        const pool = poolLayer({ url: Redacted.make(address.href), connections: 2 })
        const rows = Context.get(
          yield* Layer.build(Layer.provide(RoomRepository.layer, pool)),
          RoomRepository
        )
        yield* rows.insert(row)
        yield* proxy.freeze
        const late = yield* Effect.forkChild(Effect.exit(rows.save([snapshot])))
        yield* Effect.repeat(proxy.hasDropped, { until: (dropped) => dropped })
        yield* TestClock.adjust("5 seconds")
        const failed = yield* Fiber.join(late)
        assert.isTrue(Exit.isFailure(failed) && !Exit.hasDies(failed))
        yield* proxy.thaw
        // A connection that was opened meanwhile is given up first.
        const saved = Effect.retry(rows.save([snapshot]), { times: 2 })
        const written = yield* whileTimePasses(saved, "100 millis")
        assert.isTrue(written.has(row.id))
        yield* rows.remove([row])
      }),
    { tags: "long" }
  )

  it.effect("writes a snapshot whose row is missing once after a crash, and at no other time", () =>
    Effect.gen(function* () {
      const { crash, rows } = yield* database
      const epoch = yield* rows.nextEpoch
      const own = { ...snapshot, epoch, since: epoch }
      yield* rows.insert(own)
      yield* rows.save([own])
      yield* crash
      const begun = (yield* rows.save([own])).get(row.id)
      assert.isAbove(begun ?? 0, epoch)
      assert.deepStrictEqual(yield* rows.unclaimed([own]), new Map([[row.id, true]]))
      // It lives elsewhere, and ends there.
      const claimed = yield* rows.claim(row.id)
      assert.strictEqual((yield* rows.unclaimed([own])).size, 0)
      yield* rows.remove([claimed])
      assert.deepStrictEqual(yield* rows.unclaimed([own]), new Map([[row.id, false]]))
      assert.strictEqual((yield* rows.save([{ ...own, since: begun ?? 0 }])).size, 0)
      yield* crash
      assert.strictEqual((yield* rows.save([{ ...own, since: begun ?? 0 }])).size, 1)
      yield* rows.remove([own])
    })
  )
  it.effect("replaces a snapshot of an older activation that is written after a crash", () =>
    Effect.gen(function* () {
      const { crash, rows } = yield* database
      const older = { ...snapshot, epoch: yield* rows.nextEpoch, since: 0 }
      const newer = { ...snapshot, epoch: yield* rows.nextEpoch, since: 0 }
      yield* crash
      yield* rows.save([older])
      const left = yield* rows.unclaimed([newer])
      assert.deepStrictEqual(left, new Map([[row.id, false]]))
      assert.isTrue(isRefused(yield* Effect.flip(rows.save([older, newer]))))
      yield* rows.save([newer])
      assert.strictEqual((yield* rows.save([older])).size, 0)
      yield* rows.remove([newer])
    })
  )

  it.effect(
    "keeps the later of two snapshots of one activation when the earlier one arrives last",
    () =>
      Effect.gen(function* () {
        const { rows, sql } = yield* database
        const own = { ...snapshot, epoch: yield* rows.nextEpoch }
        yield* rows.insert(own)
        const later = { ...own, snapshot: "later", writeNumber: 8 }
        assert.strictEqual((yield* rows.save([later])).size, 1)
        assert.strictEqual(
          (yield* rows.save([{ ...own, snapshot: "late", writeNumber: 7 }])).size,
          0
        )
        assert.deepStrictEqual(yield* sql`select snapshot from rooms where id = ${row.id}`, [
          { snapshot: "later" }
        ])
        // The next activation counts from the beginning, perhaps in another process.
        const next = yield* rows.claim(row.id)
        const first = { ...own, epoch: next.epoch, snapshot: "next", writeNumber: 1 }
        assert.strictEqual((yield* rows.save([first])).size, 1)
        assert.strictEqual((yield* rows.save([{ ...later, writeNumber: 9 }])).size, 0)
        yield* rows.remove([next])
      })
  )

  it.effect("writes a snapshot to a replica that took over before it knew of the last epochs", () =>
    Effect.gen(function* () {
      const { crash, rows, sql } = yield* database
      const epoch = yield* rows.nextEpoch
      yield* crash
      yield* sql`select setval('entity_epochs', greatest(1, ${epoch}::bigint - 100))`
      assert.strictEqual((yield* rows.save([{ ...snapshot, epoch, since: epoch }])).size, 1)
      const claimed = yield* rows.claim(row.id)
      assert.isAbove(claimed.epoch, epoch)
      yield* rows.remove([claimed])
    })
  )

  it.effect("updates no index while a room keeps its members, listing and deadline", () =>
    Effect.gen(function* () {
      const { rows, sql } = yield* database
      const epoch = yield* rows.nextEpoch
      yield* rows.insert(toRow(emptyRoom(), epoch, "nod_1", start + 1000))
      const counted = sql.withTransaction(
        Effect.gen(function* () {
          for (const millis of [11_000, 21_000, 31_000, 41_000, 51_000]) {
            const later = toRow(emptyRoom(), epoch, "nod_1", start + millis)
            yield* rows.save([{ ...later, since: epoch, writeNumber: 1 }])
          }
          return yield* sql`
            select pg_stat_get_xact_tuples_updated('rooms'::regclass)::int as updated,
              pg_stat_get_xact_tuples_hot_updated('rooms'::regclass)::int as hot`
        })
      )
      assert.deepStrictEqual(yield* counted, [{ updated: 5, hot: 5 }])
      yield* rows.remove([{ ...row, epoch }])
    })
  )
})
