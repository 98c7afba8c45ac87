/** Further cases of snapshots of what functions store, each of which starts processes on several runners. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import {
  namedObjects,
  objectsOf,
  openOn,
  readOn,
  Shared,
  SharedStore,
  startRunner
} from "../../../support/snapshots.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

layer(Shared, live)("snapshots of functions", (it) => {
  it.effect("leaves the data alone that nobody else has opened since", () =>
    Effect.gen(function* () {
      const one = yield* startRunner("local")
      const id = yield* openOn(one)
      yield* one.call(id, "write?n=1")
      yield* one.snapshots.take(id, 1)
      yield* one.call(id, "write?n=2")
      // The runner crashes and comes back with its disk.
      yield* one.close(id)
      const again = yield* startRunner("local")
      assert.strictEqual(yield* again.snapshots.restore(id, 2), "local")
      assert.deepStrictEqual((yield* readOn(again, id)).rows, [1, 2])
    })
  )

  it.effect("stores only what has changed, and removes what no snapshot names", () =>
    Effect.gen(function* () {
      const one = yield* startRunner("changes")
      const { stored } = yield* SharedStore
      const id = yield* openOn(one)
      yield* one.call(id, "grow?n=10")
      yield* one.snapshots.take(id, 1)
      assert.isAbove(stored.length, 5)
      assert.isUndefined(yield* one.snapshots.take(id, 1))
      for (const n of [1, 2, 3, 4]) {
        yield* one.call(id, `write?n=${n}`)
        stored.length = 0
        assert.isDefined(yield* one.snapshots.take(id, 1))
        // The first and the last megabyte of the database, small files, and their list.
        assert.isAtMost(stored.length, 4, `snapshot ${n}`)
      }
      assert.sameMembers([...(yield* objectsOf(id))], yield* namedObjects(id))
      const sql = yield* SqlClient.SqlClient
      assert.lengthOf(yield* sql`select from function_snapshots where environment_id = ${id}`, 2)
    })
  )

  it.effect("restores nothing of a damaged snapshot", () =>
    Effect.gen(function* () {
      const one = yield* startRunner("damage-one")
      const two = yield* startRunner("damage-two")
      const { folder } = yield* SharedStore
      const id = yield* openOn(one)
      yield* one.call(id, "write?n=1")
      yield* one.snapshots.take(id, 1)
      const [object = ""] = yield* objectsOf(id)
      writeFileSync(join(folder, "blobs", object), "damaged")
      mkdirSync(join(two.dataOf(id), "d1"), { recursive: true })
      writeFileSync(join(two.dataOf(id), "d1", "own"), "older")
      const failure = yield* Effect.flip(two.snapshots.restore(id, 2))
      assert.strictEqual(failure._tag, "unavailable")
      assert.deepStrictEqual(readdirSync(join(two.dataOf(id), "d1")), ["own"])
    })
  )

  it.effect("removes snapshots with a purge, and leaves the files of the hosted app", () =>
    Effect.gen(function* () {
      const one = yield* startRunner("purge-one")
      const two = yield* startRunner("purge-two")
      const { folder } = yield* SharedStore
      const id = yield* openOn(one)
      yield* one.call(id, "write?n=1")
      yield* one.snapshots.take(id, 1)
      const hosted = join(folder, "blobs", id, "0".repeat(64))
      writeFileSync(hosted, "page")
      yield* one.runtime.purge(id)
      assert.deepStrictEqual(yield* objectsOf(id), [])
      assert.include(readdirSync(join(folder, "blobs", id)), "0".repeat(64))
      yield* one.call(id, "write?n=2")
      assert.isDefined(yield* one.snapshots.take(id, 1))
      yield* one.runtime.purge(id)
      assert.strictEqual(yield* two.snapshots.restore(id, 2), "empty")
      // Data that was purged does not come back from the disk of another runner.
      assert.strictEqual(yield* one.snapshots.restore(id, 3), "empty")
    })
  )

  it.effect("takes snapshots of function data by itself when something has changed", () =>
    Effect.gen(function* () {
      const one = yield* startRunner("periodic", 1)
      const sql = yield* SqlClient.SqlClient
      const id = yield* openOn(one)
      const newest = Effect.map(
        sql<{ number: number }>`
          select newest_snapshot as number from function_data where environment_id = ${id}`,
        ([row]) => row?.number ?? 0
      )
      for (const n of [1, 2]) {
        yield* one.call(id, `write?n=${n}`)
        yield* Effect.repeat(newest, { until: (number) => number >= n })
      }
      yield* one.snapshots.close(id)
    })
  )
})
