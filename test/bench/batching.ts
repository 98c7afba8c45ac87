/**
 * Compares this project's batching and throttling with Effect's `RequestResolver` and `RateLimiter`:
 * `node test/bench/batching.ts`. Both sides run in turns against the same simulated database, in which a
 * statement takes 1 ms and 10 run at a time. Prints CPU time and statements for each request, and
 * the median of the ratios.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Exit, Layer, Request, RequestResolver, Semaphore } from "effect"
import { RateLimiter } from "effect/persistence"
import { batchReads } from "#sql/batching"
import { RateWindowRepository } from "#sql/rate-windows"
import { ThrottleRepository } from "#sql/throttles"
import { Throttles } from "#server/platform/throttles"

const statementMillis = 1
const connections = 10
const callers = 500
const requestsPerCaller = 40
const rounds = 7

/** A database that only counts and delays. */
const makeDatabase = Effect.map(Semaphore.make(connections), (pool) => {
  const database = {
    statements: 0,
    run: pool.withPermits(1)(
      Effect.andThen(
        Effect.sync(() => {
          database.statements += 1
        }),
        Effect.sleep(statementMillis)
      )
    )
  }
  return database
})

/** Pauses of 1 to 10 ms spread the callers, as on a node with many players. */
const pauseMillis = (caller: number, n: number): number => 1 + ((caller * 7 + n * 3) % 10)

type Call = (id: string) => Effect.Effect<unknown, unknown>

/** CPU microseconds and statements for each request. */
const measure = Effect.fnUntraced(function* (
  database: Effect.Success<typeof makeDatabase>,
  call: Call,
  pauses: boolean
) {
  const statementsBefore = database.statements
  const cpuBefore = process.cpuUsage()
  yield* Effect.forEach(
    Array.from({ length: callers }, (_, caller) => caller),
    (caller) =>
      Effect.forEach(
        Array.from({ length: requestsPerCaller }, (_, n) => n),
        (n) =>
          pauses
            ? Effect.andThen(Effect.sleep(pauseMillis(caller, n)), call(`${caller}-${n}`))
            : call(`${caller}-${n}`),
        { discard: true }
      ),
    { concurrency: "unbounded", discard: true }
  )
  const { system, user } = process.cpuUsage(cpuBefore)
  const requests = callers * requestsPerCaller
  return {
    micros: (system + user) / requests,
    statements: (database.statements - statementsBefore) / requests
  }
})

type Figures = Effect.Success<ReturnType<typeof measure>>

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** Runs both sides in turns; the first round warms up and does not count. */
const compare = Effect.fnUntraced(function* (
  title: string,
  database: Effect.Success<typeof makeDatabase>,
  ours: Call,
  theirs: Call,
  pauses = false
) {
  const pairs: Array<readonly [ours: Figures, theirs: Figures]> = []
  for (let round = 0; round <= rounds; round++) {
    const pair = [
      yield* measure(database, ours, pauses),
      yield* measure(database, theirs, pauses)
    ] as const
    if (round > 0) pairs.push(pair)
  }
  const show = (side: 0 | 1) =>
    `${median(pairs.map((pair) => pair[side].micros)).toFixed(2)} us, ` +
    `${median(pairs.map((pair) => pair[side].statements)).toFixed(4)} statements`
  const ratio = median(pairs.map(([a, b]) => b.micros / a.micros))
  yield* Console.log(
    `${title}\n  ours    ${show(0)}\n  Effect  ${show(1)}\n  CPU of Effect / ours: ${ratio.toFixed(2)}`
  )
})

interface FindRow extends Request.Request<string> {
  readonly _tag: "FindRow"
  readonly environmentId: string
  readonly id: string
}
const FindRow = Request.tagged<FindRow>("FindRow")

const compareReads = Effect.gen(function* () {
  const database = yield* makeDatabase
  const find = yield* batchReads((_, ids) =>
    Effect.as(database.run, new Map(ids.map((id) => [id, id])))
  )
  const resolver = RequestResolver.makeGrouped<FindRow, string>({
    key: ({ request }) => request.environmentId,
    resolver: (entries) =>
      Effect.map(database.run, () => {
        for (const entry of entries) entry.completeUnsafe(Exit.succeed(entry.request.id))
      })
  }).pipe(RequestResolver.batchN(500))
  const ours: Call = (id) => find("environment", [id])
  const theirs: Call = (id) =>
    Effect.request(FindRow({ environmentId: "environment", id }), resolver)
  yield* compare("Look-ups at once: batchReads, RequestResolver", database, ours, theirs)
  yield* compare("Look-ups spread over time: the same", database, ours, theirs, true)
}).pipe(Effect.scoped)

/** A bucket that refuses nobody. */
const bucket = { burst: 1_000_000, seconds: 60 }

const compareThrottles = Effect.gen(function* () {
  const database = yield* makeDatabase
  const repository = Layer.merge(
    Layer.succeed(
      ThrottleRepository,
      ThrottleRepository.of({
        take: ({ now, wanted }) => Effect.as(database.run, { granted: wanted, fullAt: now }),
        sweep: () => Effect.void
      })
    ),
    Layer.succeed(
      RateWindowRepository,
      RateWindowRepository.of({
        take: () => Effect.as(database.run, { granted: true, waitMillis: 0 }),
        sweep: Effect.void
      })
    )
  )
  const throttles = yield* Effect.provide(Throttles, Throttles.on.pipe(Layer.provide(repository)))
  const limiter = yield* RateLimiter.make.pipe(Effect.provide(RateLimiter.layerStoreMemory))
  yield* compare(
    "Throttles: Throttles, RateLimiter with its memory store and one statement for each request",
    database,
    () => throttles.take(bucket, "caller"),
    () =>
      Effect.andThen(
        database.run,
        limiter.consume({
          algorithm: "token-bucket",
          key: "caller",
          window: `${bucket.seconds} seconds`,
          limit: bucket.burst
        })
      )
  )
}).pipe(Effect.scoped)

Effect.andThen(compareReads, compareThrottles).pipe(NodeRuntime.runMain)
