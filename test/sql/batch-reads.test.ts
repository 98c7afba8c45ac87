/** Batched look-ups: concurrent calls share a statement, and every caller gets its rows. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { batchReads } from "#sql/batching"

/** A table in which each id has itself, and the statements that read it. */
const makeTable = Effect.fnUntraced(function* (idsMax?: number) {
  const statements: Array<ReadonlyArray<string>> = []
  const open = yield* Deferred.make<void>()
  const find = yield* batchReads((_, ids) => {
    statements.push([...ids])
    return Effect.as(Deferred.await(open), new Map(ids.map((id) => [id, id])))
  }, idsMax)
  return { find, open, statements }
})

const turns = Effect.repeat(Effect.yieldNow, { times: 20 })

describe("batched look-ups", () => {
  it.effect("shares one statement for each environment between concurrent look-ups", () =>
    Effect.gen(function* () {
      const { find, open, statements } = yield* makeTable()
      yield* Deferred.succeed(open, undefined)
      const found = yield* Effect.all(
        [find("e1", ["a"]), find("e1", ["b", "c"]), find("e2", ["a"])],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(statements, [["a", "b", "c"], ["a"]])
      assert.deepStrictEqual(
        found.map((rows) => rows.get("a")),
        ["a", "a", "a"]
      )
    })
  )

  it.effect("collects look-ups in one batch while two statements are in flight", () =>
    Effect.gen(function* () {
      const { find, open, statements } = yield* makeTable()
      const asking: Array<Fiber.Fiber<unknown>> = []
      for (const id of ["a", "b", "c", "d", "e"]) {
        asking.push(yield* Effect.forkChild(find("e1", [id])))
        yield* turns
      }
      assert.deepStrictEqual(statements, [["a"], ["b"]])
      yield* Deferred.succeed(open, undefined)
      yield* Effect.forEach(asking, Fiber.join)
      assert.deepStrictEqual(statements, [["a"], ["b"], ["c", "d", "e"]])
    })
  )

  it.effect("puts at most 500 ids into a statement", () =>
    Effect.gen(function* () {
      const { find, open, statements } = yield* makeTable()
      yield* Deferred.succeed(open, undefined)
      const ids = Array.from({ length: 1200 }, (_, i) => String(i))
      yield* Effect.forEach(ids, (id) => find("e1", [id]), { concurrency: "unbounded" })
      assert.deepStrictEqual(
        statements.map(({ length }) => length),
        [500, 500, 200]
      )
    })
  )

  it.effect("puts fewer ids into a statement where each row is large", () =>
    Effect.gen(function* () {
      const { find, open, statements } = yield* makeTable(2)
      yield* Deferred.succeed(open, undefined)
      const ids = ["a", "b", "c", "d", "e"]
      yield* Effect.forEach(ids, (id) => find("e1", [id]), { concurrency: "unbounded" })
      assert.deepStrictEqual(statements, [["a", "b"], ["c", "d"], ["e"]])
    })
  )

  it.effect("takes turns between environments, however many look-ups one of them has", () =>
    Effect.gen(function* () {
      const { find, open, statements } = yield* makeTable(2)
      const ask = (environmentId: string, ids: ReadonlyArray<string>) =>
        Effect.forkChild(
          Effect.forEach(ids, (id) => find(environmentId, [id]), { concurrency: "unbounded" })
        )
      const flood = yield* ask("e1", ["a", "b", "c", "d", "e", "f", "g", "h", "i"])
      yield* turns
      const other = yield* ask("e2", ["x", "y", "z"])
      yield* turns
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.joinAll([flood, other])
      const inFlight = [
        ["a", "b"],
        ["c", "d"]
      ]
      assert.deepStrictEqual(statements.slice(0, 2), inFlight)
      assert.deepStrictEqual(statements.slice(2), [
        ["e", "f"],
        ["x", "y"],
        ["g", "h"],
        ["z"],
        ["i"]
      ])
    })
  )

  it.effect("fails the look-ups of a batch together, and reads again for the next ones", () =>
    Effect.gen(function* () {
      let fails = true
      const find = yield* batchReads((_, ids) =>
        fails ? Effect.die("gone") : Effect.succeed(new Map(ids.map((id) => [id, id])))
      )
      const both = Effect.all([Effect.exit(find("e1", ["a"])), Effect.exit(find("e1", ["b"]))], {
        concurrency: "unbounded"
      })
      assert.isTrue((yield* both).every(Exit.isFailure))
      fails = false
      assert.isTrue((yield* both).every(Exit.isSuccess))
    })
  )
})
