/** Write-behind of room snapshots: batches, retries, refused rows, and rooms without an owner. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { RoomRepository } from "#sql/rooms"
import { ThisNode } from "#entities/local-actors"
import { RoomActor } from "#entities/room/actor"
import type { RoomRuntime } from "#entities/room/runtime"
import { RoomWriter, snapshotsPerStatement } from "#entities/room/writer"
import { emptyRoom } from "../../support/room-harness.ts"

const unused = () => Effect.die("not used in this test")

type Save = RoomRepository["Service"]["save"]

type Unclaimed = RoomRepository["Service"]["unclaimed"]

/** Writer over a repository with the given `save` and `unclaimed`. */
const writerWith = (save: Save, unclaimed: Unclaimed = unused) =>
  RoomWriter.layer.pipe(
    Layer.provide([
      ThisNode.layer,
      Layer.succeed(RoomRepository, {
        save,
        claim: unused,
        nextEpoch: Effect.die("not used in this test"),
        insert: unused,
        unclaimed,
        remove: unused,
        seatsOf: unused,
        ofPlayer: unused,
        findByCode: unused,
        findById: unused,
        list: unused,
        listOpen: unused,
        overdue: unused
      })
    ]),
    Layer.provide(SecureRandom.layerWebCrypto)
  )

const written = (ids: ReadonlyArray<string>) => new Map(ids.map((id) => [id, 0]))

/** A `save` that waits for the release, and the ids of each statement. */
const heldSaves = () => {
  const saves: Array<ReadonlyArray<string>> = []
  const release = Latch.makeUnsafe(false)
  const save: Save = (rows) =>
    Effect.suspend(() => {
      const ids = rows.map(({ id }) => id)
      saves.push(ids)
      return Effect.as(release.await, written(ids))
    })
  return { release, save, saves }
}

const runtime: RoomRuntime = {
  now: () => 0,
  clocks: [],
  hasLease: () => true,
  heldFrom: () => null,
  wakeAt: () => undefined,
  changed: () => undefined,
  flushSoon: () => undefined,
  memberAdded: () => undefined,
  memberRemoved: () => undefined,
  shared: true,
  closed: () => undefined
}

const room = (id = "rm_1") => new RoomActor(id, 1, emptyRoom({ id }), runtime)

const unreachable = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({ cause: undefined, message: "connection refused" })
})

const refused = new SqlError.SqlError({
  reason: new SqlError.ConstraintError({ cause: { code: "23505" }, message: "the code is taken" })
})

const codeTaken = new SqlError.SqlError({
  reason: new SqlError.UniqueViolation({
    cause: { code: "23505", constraint: "rooms_code" },
    constraint: "rooms_code",
    message: "the code is taken"
  })
})

describe("the room writer", () => {
  it.effect("finishes a flush while rooms keep changing", () => {
    const saves: Array<number> = []
    let change = (): void => undefined
    const save: Save = (rows) =>
      Effect.suspend(() => {
        saves.push(rows.length)
        change()
        return saves.length > 3
          ? Effect.die("the flush does not end")
          : Effect.succeed(written(rows.map(({ id }) => id)))
      })
    return Effect.gen(function* () {
      const writer = yield* RoomWriter
      const actor = room()
      change = () => writer.markDirty(actor)
      change()
      yield* writer.flush
      assert.deepStrictEqual(saves, [1])
      assert.strictEqual(writer.waiting(), 1)
    }).pipe(Effect.provide(writerWith(save)))
  })

  it.effect("writes a room with a waiting reply after one statement of a long pass", () => {
    const { release, save, saves } = heldSaves()
    return Effect.gen(function* () {
      const writer = yield* RoomWriter
      const settle = Effect.repeat(Effect.yieldNow, { times: 10 })
      yield* settle
      for (let n = 0; n < 3 * snapshotsPerStatement; n++) writer.markDirty(room(`rm_${n}`))
      const pass = yield* Effect.forkChild(writer.flush, { startImmediately: true })
      const leaving = room("rm_leaving")
      writer.markDirty(leaving)
      writer.flushSoon(leaving)
      yield* settle
      yield* release.open
      yield* Fiber.join(pass)
      const place = saves.findIndex((ids) => ids.includes("rm_leaving"))
      assert.deepStrictEqual([place, saves.length], [1, 4], "place among the statements")
    }).pipe(Effect.provide(writerWith(save)))
  })

  it.effect("ends a flush after a write that was under way has failed and is repeated", () => {
    const saves: Array<ReadonlyArray<string>> = []
    const fail = Latch.makeUnsafe(false)
    const save: Save = (rows) =>
      Effect.suspend(() => {
        const ids = rows.map(({ id }) => id)
        saves.push(ids)
        if (saves.length > 1) return Effect.succeed(written(ids))
        return Effect.andThen(fail.await, Effect.fail(unreachable))
      })
    return Effect.gen(function* () {
      const writer = yield* RoomWriter
      const actor = room()
      writer.markDirty(actor)
      writer.flushSoon(actor)
      yield* Effect.yieldNow
      assert.deepStrictEqual(saves, [["rm_1"]])
      const stopped = yield* Effect.forkChild(writer.flush, { startImmediately: true })
      yield* fail.open
      yield* Fiber.join(stopped)
      assert.deepStrictEqual(saves, [["rm_1"], ["rm_1"]])
      assert.strictEqual(writer.waiting(), 0)
    }).pipe(Effect.provide(writerWith(save)))
  })

  it.effect("ends a shared flush only after the changes that were made before it", () => {
    const { release, save, saves } = heldSaves()
    return Effect.gen(function* () {
      const writer = yield* RoomWriter
      yield* Effect.repeat(Effect.yieldNow, { times: 10 })
      const flushAfterChange = (id: string) =>
        Effect.suspend(() => {
          writer.markDirty(room(id))
          return Effect.tap(writer.flush, () => Effect.sync(() => assert.include(saves.flat(), id)))
        })
      const first = yield* Effect.forkChild(flushAfterChange("rm_1"), { startImmediately: true })
      assert.deepStrictEqual(saves, [["rm_1"]])
      const others = yield* Effect.forkChild(
        Effect.forEach(["rm_2", "rm_3", "rm_4"], flushAfterChange, { concurrency: "unbounded" }),
        { startImmediately: true }
      )
      yield* release.open
      yield* Fiber.join(first)
      yield* Fiber.join(others)
      assert.deepStrictEqual(saves, [["rm_1"], ["rm_2", "rm_3", "rm_4"]])
    }).pipe(Effect.provide(writerWith(save)))
  })

  it.effect("writes all rooms except the one that the database refuses", () => {
    const saved: Array<string> = []
    const save: Save = (rows) =>
      Effect.suspend(() => {
        const ids = rows.map(({ id }) => id)
        if (ids.includes("rm_2")) return Effect.fail(refused)
        saved.push(...ids)
        return Effect.succeed(written(ids))
      })
    return Effect.gen(function* () {
      const writer = yield* RoomWriter
      for (const id of ["rm_1", "rm_2", "rm_3"]) writer.markDirty(room(id))
      yield* writer.flush
      assert.deepStrictEqual(saved, ["rm_1", "rm_3"])
      assert.strictEqual(writer.waiting(), 1)
    }).pipe(Effect.provide(writerWith(save)))
  })

  it.effect("does not write more often to an unreachable database when more replies wait", () => {
    let attempts = 0
    const save: Save = () =>
      Effect.suspend(() => {
        attempts += 1
        return Effect.fail(unreachable)
      })
    return Effect.gen(function* () {
      const writer = yield* RoomWriter
      const actor = room()
      yield* Effect.sync(() => {
        writer.markDirty(actor)
        writer.flushSoon(actor)
      }).pipe(Effect.andThen(Effect.yieldNow), Effect.repeat({ times: 100 }))
      // Once for the periodic flush, once for the waiting replies.
      assert.strictEqual(attempts, 2)
    }).pipe(Effect.provide(writerWith(save)))
  })

  it.effect(
    "keeps a stopped room until another activation owns it, and writes its missing row again",
    () => {
      const saves: Array<string> = []
      const save: Save = (rows) =>
        Effect.sync(() => {
          saves.push(...rows.map(({ id }) => id))
          return written(saves)
        })
      let attempts = 0
      let row: boolean | undefined = true
      const unclaimed: Unclaimed = (left) =>
        Effect.sync(() => {
          attempts += 1
          return new Map(row === undefined ? [] : left.map(({ id }) => [id, row === true]))
        })
      return Effect.gen(function* () {
        const writer = yield* RoomWriter
        const actor = room()
        actor.retire()
        writer.deactivated(actor)
        yield* TestClock.adjust("5 seconds")
        assert.deepStrictEqual(saves, [])
        row = false
        yield* TestClock.adjust("1 seconds")
        assert.deepStrictEqual(Array.from(new Set(saves)), ["rm_1"])
        row = undefined
        yield* TestClock.adjust("1 seconds")
        const [writtenBefore, attemptsBefore] = [saves.length, attempts]
        yield* TestClock.adjust("5 seconds")
        assert.deepStrictEqual([saves.length, attempts], [writtenBefore, attemptsBefore])
        assert.isTrue(actor.fenced)
      }).pipe(Effect.provide(writerWith(save, unclaimed)))
    }
  )

  it.effect("writes all active rooms once after a crash of Postgres", () => {
    const saves: Array<string> = []
    let tableEpoch = 1
    const save: Save = (rows) =>
      Effect.sync(() => {
        saves.push(...rows.map(({ id }) => id))
        return new Map(rows.map(({ id }) => [id, tableEpoch]))
      })
    return Effect.gen(function* () {
      const writer = yield* RoomWriter
      const [changing, idle, gone] = [room("rm_1"), room("rm_2"), room("rm_3")]
      writer.markDirty(changing)
      yield* writer.flush
      for (const actor of [changing, idle, gone]) writer.activated(actor)
      gone.activation.fence()
      writer.deactivated(gone)
      saves.length = 0
      writer.markDirty(changing)
      yield* writer.flush
      tableEpoch = 2
      writer.markDirty(changing)
      yield* writer.flush
      assert.deepStrictEqual(saves, ["rm_1", "rm_1"])
      yield* TestClock.adjust("1 seconds")
      assert.deepStrictEqual(saves.slice(2), ["rm_1", "rm_2"])
      assert.strictEqual(idle.since, 2)
    }).pipe(Effect.provide(writerWith(save)))
  })

  it.effect("writes missing rows again when the rooms stop with their runner", () => {
    const saves: Array<string> = []
    const save: Save = (rows) =>
      Effect.sync(() => {
        saves.push(...rows.map(({ id }) => id))
        return written(saves)
      })
    const unclaimed: Unclaimed = (left) =>
      Effect.succeed(new Map(left.map(({ id }) => [id, false])))
    return Effect.gen(function* () {
      yield* Effect.provide(
        Effect.map(RoomWriter, (writer) => writer.deactivated(room())),
        writerWith(save, unclaimed)
      )
      assert.deepStrictEqual(saves, ["rm_1"])
    })
  })

  it.effect("writes a room without its code if another room has taken the code", () => {
    const codes: Array<string> = []
    const save: Save = (rows) =>
      Effect.suspend(() => {
        codes.push(...rows.map(({ code }) => code))
        return codes.length === 1 ? Effect.fail(codeTaken) : Effect.succeed(written(["rm_1"]))
      })
    return Effect.gen(function* () {
      const writer = yield* RoomWriter
      writer.markDirty(room())
      yield* writer.flush
      assert.deepStrictEqual(codes, [emptyRoom().settings.code, "rm_1"])
    }).pipe(Effect.provide(writerWith(save)))
  })
})
