/** Snapshots of what functions store, on real workerd: under writes, refused, interrupted and removed. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import type { EnvironmentId } from "#rpc/ids"
import { program } from "../../support/functions.ts"
import { makeEnvironment, Shared, SharedStore, startRunner } from "../../support/snapshots.ts"
import { eventually } from "../../support/voice-peer.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

/** Writes a number to each kind of storage, one after the other, and reads them back. */
const storing = program(
  `
  import { DurableObject } from "cloudflare:workers"
  export class Room extends DurableObject {
    async write(n) { await this.ctx.storage.put("n", n) }
    async read() { return (await this.ctx.storage.get("n")) ?? 0 }
  }
  export default { async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url)
    const n = Number(searchParams.get("n"))
    const room = env.ROOM.get(env.ROOM.idFromName("a"))
    if (pathname === "/write") {
      await env.DB.exec("create table if not exists t (n integer, bytes blob)")
      await env.DB.prepare("insert into t values (?, null)").bind(n).run()
      await env.CACHE.put("hot", String(n))
      await env.CACHE.put("k" + n, String(n))
      await env.FILES.put("hot", "f".repeat(5000) + n)
      await room.write(n)
      return new Response("written")
    }
    if (pathname === "/grow") {
      await env.DB.exec("create table if not exists t (n integer, bytes blob)")
      for (let i = 0; i < n; i += 1) {
        await env.DB.prepare("insert into t values (0, randomblob(500000))").run()
      }
      return new Response("grown")
    }
    const rows = (await env.DB.prepare("select n from t").all()).results.map(({ n }) => n)
    const keys = await Promise.all(rows.slice(0, -1).map((n) => env.CACHE.get("k" + n)))
    return Response.json({
      rows,
      keys: keys.map(Number),
      hot: Number(await env.CACHE.get("hot")),
      file: Number((await (await env.FILES.get("hot"))?.text())?.slice(5000)),
      room: await room.read()
    })
  } }`,
  {
    bindings: [
      { name: "DB", type: "db" },
      { name: "CACHE", type: "kv" },
      { name: "FILES", type: "files" },
      { name: "ROOM", type: "durableObject", class: "Room" }
    ]
  }
)

type Runner = Effect.Success<ReturnType<typeof startRunner>>

/** An environment that a runner has opened under an epoch. */
const openOn = Effect.fnUntraced(function* (runner: Runner, epoch = 1) {
  const id = runner.live(storing)
  yield* makeEnvironment(id)
  assert.strictEqual(yield* runner.snapshots.restore(id, epoch), "local")
  return id
})

const readOn = Effect.fnUntraced(function* (runner: Runner, id: EnvironmentId) {
  runner.run(id, storing)
  return JSON.parse(yield* runner.call(id, "read")) as {
    rows: Array<number>
    keys: Array<number>
    hot: number
    file: number
    room: number
  }
})

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

const namedObjects = Effect.fnUntraced(function* (id: EnvironmentId) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ sha256: string }>`
    select sha256 from function_snapshot_objects where environment_id = ${id}`
  return rows.map(({ sha256 }) => `${id}/functions/${sha256}`)
})

const objectsOf = Effect.fnUntraced(function* (id: EnvironmentId) {
  return (yield* (yield* SharedStore).objects).filter((key) => key.startsWith(id))
})

layer(Shared, live)("snapshots of functions", (it) => {
  it.effect("holds every acknowledged write, all of one moment, while the process writes on", () =>
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

  it.effect("is refused once a newer epoch has opened the data", () =>
    Effect.gen(function* () {
      const one = yield* startRunner("epoch-one")
      const two = yield* startRunner("epoch-two")
      const id = yield* openOn(one, 3)
      yield* one.call(id, "write?n=1")
      yield* one.snapshots.take(id, 3)
      assert.strictEqual((yield* Effect.flip(two.snapshots.restore(id, 2)))._tag, "SnapshotRefused")
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
    })
  )

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

  it.effect("keeps the snapshot before one that fails in the middle", () =>
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

  it.effect("takes snapshots by itself when something has changed", () =>
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
