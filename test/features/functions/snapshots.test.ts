/** Snapshots of what functions store, on real workerd: under writes, refused and interrupted. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import {
  namedObjects,
  objectsOf,
  openOn,
  readOn,
  Shared,
  SharedStore,
  startRunner
} from "../../support/snapshots.ts"
import { eventually } from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const checkDatabases = (data: string): number => {
  const files = readdirSync(data, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".sqlite")
  )
  for (const file of files) {
    const database = new DatabaseSync(join(data, file))
    assert.deepStrictEqual(
      { ...database.prepare("pragma quick_check").get() },
      { quick_check: "ok" },
      file
    )
    database.close()
  }
  return files.length
}

layer(Shared, live)("snapshots of functions", (it) => {
  it.effect("takes snapshots of one moment with every acknowledged write, while writes go on", () =>
    Effect.gen(function* () {
      const one = yield* startRunner("writes-one")
      const two = yield* startRunner("writes-two")
      const id = yield* openOn(one)
      let acknowledged = 0
      const write = Effect.suspend(() => one.call(id, `write?n=${acknowledged + 1}`)).pipe(
        Effect.tap(() => Effect.sync(() => void (acknowledged += 1)))
      )
      yield* write
      const writing = yield* Effect.forkChild(Effect.forever(write))
      let before = 0
      for (const number of [1, 2, 3]) {
        before = acknowledged
        assert.strictEqual((yield* one.snapshots.take(id, 1))?.number, number)
        yield* eventually(() => acknowledged > before, "the process writes on")
      }
      const after = acknowledged
      assert.strictEqual(yield* two.snapshots.restore(id, 2), "restored")
      yield* Fiber.interrupt(writing)
      assert.isAtLeast(checkDatabases(two.dataOf(id)), 8)
      const { file, hot, keys, room, rows } = yield* readOn(two, id)
      const last = rows.length
      assert.isAtLeast(last, before)
      assert.isAtMost(last, after + 1)
      assert.deepStrictEqual(
        rows,
        Array.from({ length: last }, (_, index) => index + 1)
      )
      assert.deepStrictEqual(keys, rows.slice(0, -1))
      for (const value of [hot, file, room]) assert.include([last - 1, last], value)
    })
  )

  it.effect(
    "refuses to take or restore a snapshot of function data once a newer epoch has opened the data",
    () =>
      Effect.gen(function* () {
        const one = yield* startRunner("epoch-one")
        const two = yield* startRunner("epoch-two")
        const id = yield* openOn(one, 3)
        yield* one.call(id, "write?n=1")
        yield* one.snapshots.take(id, 3)
        assert.strictEqual(
          (yield* Effect.flip(two.snapshots.restore(id, 2)))._tag,
          "SnapshotRefused"
        )
        yield* two.snapshots.restore(id, 4)
        yield* one.call(id, "write?n=2")
        assert.strictEqual((yield* Effect.flip(one.snapshots.take(id, 3)))._tag, "SnapshotRefused")
        assert.deepStrictEqual((yield* readOn(two, id)).rows, [1])
        yield* two.call(id, "write?n=3")
        yield* two.close(id)
        assert.isDefined(yield* two.snapshots.take(id, 4))
        // What the first runner has written since is not part of the newest data.
        yield* one.close(id)
        assert.strictEqual(yield* one.snapshots.restore(id, 5), "restored")
        assert.deepStrictEqual((yield* readOn(one, id)).rows, [1, 3])
      }),
    { tags: "long" }
  )

  it.effect(
    "keeps the snapshot before one that fails in the middle",
    () =>
      Effect.gen(function* () {
        const one = yield* startRunner("middle-one")
        const two = yield* startRunner("middle-two")
        const { state } = yield* SharedStore
        const id = yield* openOn(one)
        yield* one.call(id, "write?n=1")
        yield* one.snapshots.take(id, 1)
        yield* one.call(id, "grow?n=5")
        state.left = 3
        assert.strictEqual((yield* Effect.flip(one.snapshots.take(id, 1)))._tag, "unavailable")
        yield* two.snapshots.restore(id, 2)
        assert.deepStrictEqual((yield* readOn(two, id)).rows, [1])
        yield* two.call(id, "write?n=2")
        state.left = Infinity
        for (const n of [3, 4]) {
          yield* two.snapshots.take(id, 2)
          yield* two.call(id, `write?n=${n}`)
        }
        yield* two.snapshots.take(id, 2)
        // What the first runner has stored in vain is gone as well.
        assert.sameMembers([...(yield* objectsOf(id))], yield* namedObjects(id))
      }),
    { tags: "long" }
  )
})
