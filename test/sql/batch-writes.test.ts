/** Batched writes: concurrent calls share a statement, at most one per owner. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { batchWrites } from "#sql/batching"

interface Write {
  readonly owner: string
  readonly value: number
  readonly size?: number
  readonly tenant?: string
}

/** A table that adds up what its owners write; it refuses negative numbers, and all beside them. */
const makeTable = Effect.gen(function* () {
  const statements: Array<ReadonlyArray<number>> = []
  const sums = new Map<string, number>()
  const open = yield* Deferred.make<void>()
  const add = ({ owner, value }: Write): number => {
    const sum = (sums.get(owner) ?? 0) + value
    sums.set(owner, sum)
    return sum
  }
  const write = yield* batchWrites<Write, number | "negative">({
    ownerOf: ({ owner }) => owner,
    sizeOf: ({ size = 1 }) => size,
    tenantOf: ({ tenant = "a" }) => tenant,
    single: (request) =>
      Effect.suspend(() => {
        statements.push([request.value])
        const done = request.value < 0 ? "negative" : add(request)
        return Effect.as(Deferred.await(open), done)
      }),
    batch: (requests) =>
      Effect.suspend(() => {
        statements.push(requests.map(({ value }) => value))
        const refused = requests.some(({ value }) => value < 0)
        const answers = new Map(refused ? [] : requests.map((each) => [each.owner, add(each)]))
        return Effect.as(Deferred.await(open), refused ? ("refused" as const) : answers)
      })
  })
  return { open, statements, write }
})

const all = { concurrency: "unbounded" } as const

describe("batched writes", () => {
  it.effect(
    "shares one statement between concurrent writes; a single write uses the plain one",
    () =>
      Effect.gen(function* () {
        const { open, statements, write } = yield* makeTable
        yield* Deferred.succeed(open, undefined)
        const writes = [1, 2, 3].map((value) => write({ owner: `o${value}`, value }))
        assert.deepStrictEqual(yield* Effect.all(writes, all), [1, 2, 3])
        assert.strictEqual(yield* write({ owner: "o1", value: 5 }), 6)
        assert.deepStrictEqual(statements, [[1, 2, 3], [5]])
      })
  )

  it.effect("runs the writes of one owner in separate statements, in order", () =>
    Effect.gen(function* () {
      const { open, statements, write } = yield* makeTable
      yield* Deferred.succeed(open, undefined)
      const writes = [1, 2, 4].map((value) => write({ owner: "a", value }))
      const others = [8, 16].map((value) => write({ owner: `o${value}`, value }))
      assert.deepStrictEqual(yield* Effect.all([...writes, ...others], all), [1, 3, 7, 8, 16])
      assert.deepStrictEqual(
        statements.map((values) => values.length),
        [3, 1, 1]
      )
    })
  )

  it.effect("never has two statements in flight for one owner, however many writes wait", () =>
    Effect.gen(function* () {
      const { open, statements, write } = yield* makeTable
      const writes = Array.from({ length: 20 }, () => write({ owner: "a", value: 1 }))
      const flood = yield* Effect.forkChild(Effect.all(writes, all))
      yield* Effect.repeat(Effect.yieldNow, { times: 20 })
      assert.deepStrictEqual(statements, [[1]])
      const other = yield* Effect.forkChild(write({ owner: "b", value: 8 }))
      yield* Effect.repeat(Effect.yieldNow, { times: 20 })
      assert.deepStrictEqual(statements, [[1], [8]])
      yield* Deferred.succeed(open, undefined)
      const sums = yield* Fiber.join(flood)
      assert.deepStrictEqual(
        sums,
        Array.from({ length: 20 }, (_, i) => i + 1)
      )
      assert.strictEqual(yield* Fiber.join(other), 8)
    })
  )

  it.effect(
    "takes writes of all tenants into the next statement, however many one of them has",
    () =>
      Effect.gen(function* () {
        const { open, statements, write } = yield* makeTable
        const many = Array.from({ length: 1000 }, (_, value) =>
          write({ owner: `o${value}`, value })
        )
        const flood = yield* Effect.forkChild(Effect.all(many, all), { startImmediately: true })
        yield* Effect.yieldNow
        const others = ["b", "c"].map((tenant) => write({ owner: tenant, tenant, value: 5000 }))
        const rest = yield* Effect.forkChild(Effect.all(others, all), { startImmediately: true })
        yield* Deferred.succeed(open, undefined)
        yield* Fiber.joinAll([flood, rest])
        const withOthers = statements.findIndex((values) => values.includes(5000))
        assert.deepStrictEqual(
          statements[withOthers]?.filter((value) => value === 5000),
          [5000, 5000]
        )
        // Four statements were under way when the others came.
        assert.isAtMost(withOthers, 4)
      })
  )

  it.effect("retries refused writes one by one, so that only the faulty one fails", () =>
    Effect.gen(function* () {
      const { open, write } = yield* makeTable
      yield* Deferred.succeed(open, undefined)
      const writes = [1, -1, 3].map((value) => write({ owner: `o${value}`, value }))
      assert.deepStrictEqual(yield* Effect.all(writes, all), [1, "negative", 3])
    })
  )

  it.effect(
    "opens more statements for a long queue, four at most, with batches of bounded size",
    () =>
      Effect.gen(function* () {
        const { open, statements, write } = yield* makeTable
        const writing: Array<Fiber.Fiber<unknown>> = []
        const begin = (from: number, count: number, size: number) =>
          Effect.gen(function* () {
            for (let value = from; value < from + count; value++) {
              writing.push(yield* Effect.forkChild(write({ owner: `o${value}`, value, size })))
            }
            yield* Effect.repeat(Effect.yieldNow, { times: 20 })
          })
        yield* begin(1000, 1, 1)
        yield* begin(1001, 1, 1)
        yield* begin(0, 150, 1)
        yield* begin(2000, 3, 400_000)
        // A quarter of the queue each.
        assert.deepStrictEqual(
          statements.map(({ length }) => length),
          [1, 1, 38, 28]
        )
        yield* begin(3000, 900, 1)
        assert.strictEqual(statements.length, 4)
        yield* Deferred.succeed(open, undefined)
        yield* Effect.forEach(writing, Fiber.join)
        assert.strictEqual(statements.flat().length, writing.length)
        assert.strictEqual(Math.max(...statements.map(({ length }) => length)), 100)
        const large = statements.map((values) =>
          values.filter((each) => Math.floor(each / 1000) === 2)
        )
        assert.isAtMost(Math.max(...large.map(({ length }) => length)), 2)
      })
  )

  it.effect("fails a batch without a retry when its outcome is unknown", () =>
    Effect.gen(function* () {
      let statements = 0
      const write = yield* batchWrites<Write, number>({
        ownerOf: ({ owner }) => owner,
        sizeOf: () => 1,
        single: ({ value }) => Effect.succeed(value),
        batch: () => {
          statements += 1
          return Effect.die("gone")
        }
      })
      const writes = [1, 2].map((value) => Effect.exit(write({ owner: `o${value}`, value })))
      assert.isTrue((yield* Effect.all(writes, all)).every(Exit.isFailure))
      assert.strictEqual(statements, 1)
      assert.strictEqual(yield* write({ owner: "o1", value: 7 }), 7)
    })
  )
})
