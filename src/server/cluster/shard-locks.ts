/**
 * Shard locks and runner list in Postgres, with four additions to Effect Cluster's storage:
 *
 * - a runner that stops stays listed until it has released its shards, so that the others can acquire
 *   them at once;
 * - shards are released in batches ({@link LockSession});
 * - a runner that finds shards still locked retries for a moment, since they are about to be released;
 *   Effect Cluster itself retries after a second;
 * - a runner that was paused does not act as an owner until it has refreshed its locks ({@link Lease}).
 */
import { Clock, Context, Deferred, Duration, Effect, Layer, Schedule, Semaphore } from "effect"
import {
  type ClusterError,
  type RunnerAddress,
  RunnerStorage,
  type ShardId,
  ShardingConfig
} from "effect/cluster"
import { Lease, type Ownership } from "#entities/lease"
import { readings } from "#server/platform/metrics"
import { monotonicMillis } from "#server/platform/monotonic"
import { LockSession } from "./lock-session.ts"
import { PauseDetector } from "./pause-detector.ts"

const retryMillis = 30
/** Well below the second that Effect Cluster allows for it. */
const acquireMillis = 350
/** How often the pause detector is polled, and how often a waiter checks for confirmed ownership. */
const awakeMillis = 500
const confirmMillis = 20
const batchMillis = 20
const unlockMillis = 1500
/** One at a time, the last of a hundred releases would time out, which would cost all locks. */
const releaseConcurrency = 8

type Storage = RunnerStorage.RunnerStorage["Service"]
type PersistenceError = ClusterError.PersistenceError
/** Serializes steps: a shard acquired during `releaseAll` would be released with the others. */
type Exclusively = <A, E>(step: Effect.Effect<A, E>) => Effect.Effect<A, E>
type Done = Deferred.Deferred<void, PersistenceError>

/** Releases shards. Those whose entities stop within 20 ms share one statement. */
const makeRelease = Effect.fnUntraced(function* (
  storage: Storage,
  locked: Set<string>,
  exclusively: Exclusively
) {
  const scope = yield* Effect.scope
  const session = yield* LockSession
  let batch: { readonly shards: Array<ShardId.ShardId>; readonly done: Done } | undefined

  const releaseBatch = Effect.fnUntraced(function* (
    address: RunnerAddress.RunnerAddress,
    shards: ReadonlyArray<ShardId.ShardId>
  ) {
    for (const shard of shards) locked.delete(shard.toString())
    if (locked.size === 0) return yield* storage.releaseAll(address)
    const unlocked = yield* session.unlock(shards).pipe(
      Effect.timeout(unlockMillis),
      Effect.orElseSucceed(() => 0)
    )
    if (unlocked === shards.length) return
    yield* Effect.forEach(shards, (shard) => storage.release(address, shard), {
      concurrency: releaseConcurrency,
      discard: true
    })
  })

  return Effect.fnUntraced(function* (
    address: RunnerAddress.RunnerAddress,
    shard: ShardId.ShardId
  ) {
    if (batch !== undefined) {
      batch.shards.push(shard)
      return yield* Deferred.await(batch.done)
    }
    const opened = { shards: [shard], done: yield* Deferred.make<void, PersistenceError>() }
    batch = opened
    yield* Effect.sleep(batchMillis).pipe(
      Effect.andThen(
        Effect.suspend(() => {
          batch = undefined
          return exclusively(releaseBatch(address, opened.shards))
        })
      ),
      Deferred.into(opened.done),
      Effect.forkIn(scope)
    )
    yield* Deferred.await(opened.done)
  })
})

/** A pause detector that is polled for as long as the scope lives. */
const makePauseDetector = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const { shardLockExpiration, shardLockRefreshInterval } = yield* ShardingConfig.ShardingConfig
  const [expiration, refreshInterval] = [shardLockExpiration, shardLockRefreshInterval].map(
    (duration) => Duration.toMillis(Duration.fromInputUnsafe(duration))
  )
  const gap = (expiration ?? 0) - (refreshInterval ?? 0) - awakeMillis
  const detector = new PauseDetector(gap, [
    () => clock.currentTimeMillisUnsafe(),
    monotonicMillis(clock)
  ])
  const { counter } = yield* readings
  counter(
    "svc_cluster_freezes_total",
    "Pauses of the process that were long enough to lose its shard locks.",
    () => detector.pauses
  )
  yield* Effect.sync(() => detector.isUnconfirmed).pipe(
    Effect.repeat(Schedule.spaced(awakeMillis)),
    Effect.forkScoped
  )
  return detector
})

/** Ownership is confirmed while no pause is unresolved. */
const ownershipOf = (detector: PauseDetector): Ownership => ({
  hasLease: () => !detector.isUnconfirmed,
  confirmed: Effect.suspend(() =>
    detector.isUnconfirmed ? Effect.as(Effect.sleep(confirmMillis), true) : Effect.succeed(false)
  ).pipe(Effect.repeat({ while: (waiting) => waiting }), Effect.asVoid)
})

const make = Effect.gen(function* () {
  const storage = yield* RunnerStorage.RunnerStorage
  const now = monotonicMillis(yield* Clock.Clock)
  const detector = yield* makePauseDetector
  const locked = new Set<string>()
  const exclusively: Exclusively = (yield* Semaphore.make(1)).withPermits(1)
  const release = yield* makeRelease(storage, locked, exclusively)
  let leaving: RunnerAddress.RunnerAddress | undefined

  yield* Effect.addFinalizer(() =>
    leaving === undefined ? Effect.void : Effect.ignore(storage.unregister(leaving))
  )

  const runnerStorage = RunnerStorage.RunnerStorage.of({
    ...storage,
    unregister: (address) =>
      Effect.sync(() => {
        leaving = address
      }),
    acquire: Effect.fnUntraced(function* (address, shardIds) {
      const wanted = Array.from(shardIds)
      const startedAt = now()
      while (true) {
        const acquired = yield* exclusively(
          Effect.tap(storage.acquire(address, wanted), (shards) =>
            Effect.sync(() => shards.forEach((shard) => locked.add(shard.toString())))
          )
        )
        if (acquired.length === wanted.length || now() - startedAt > acquireMillis) return acquired
        yield* Effect.sleep(retryMillis)
      }
    }),
    refresh: (address, shardIds) =>
      Effect.suspend(() => {
        const confirm = detector.beginRefresh()
        return Effect.tap(storage.refresh(address, shardIds), () => Effect.sync(confirm))
      }),
    release,
    releaseAll: (address) => {
      locked.clear()
      return storage.releaseAll(address)
    }
  })

  return Context.make(RunnerStorage.RunnerStorage, runnerStorage).pipe(
    Context.add(Lease, ownershipOf(detector))
  )
})

/** Wraps the runner storage below it. */
export const HandoverStorage = Layer.effectContext(make)
