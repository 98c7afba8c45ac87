/**
 * The cluster's list of runners and its shard locks in Postgres, with four additions to what the
 * library does:
 *
 * - a runner that stops stays listed until it has handed its shards over, so that the others find
 *   them free when they look;
 * - shards are released together ({@link LockSession});
 * - a runner that finds shards still locked tries again at once for a moment: they are on their way,
 *   and the library itself looks again only after a second;
 * - a runner that was frozen does not act as an owner until its locks have been asked for again
 *   ({@link Lease}).
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
import { LockSession } from "./lock-session.ts"
import { PauseDetector } from "./pause-detector.ts"

const retryMillis = 30
/** Well below the second that the library gives it. */
const patienceMillis = 350
/** How often a process notes that it is awake, and how often it looks whether its doubt is over. */
const awakeMillis = 500
const confirmMillis = 20
const gatherMillis = 20
const unlockMillis = 1500
/** In one queue a hundred would wait longer than any of them may take, which would cost all locks. */
const releasesUnderWay = 8

type Storage = RunnerStorage.RunnerStorage["Service"]
type PersistenceError = ClusterError.PersistenceError
/** Nothing that is done alone overlaps: what is acquired meanwhile would be released with all. */
type Alone = <A, E>(step: Effect.Effect<A, E>) => Effect.Effect<A, E>
type Done = Deferred.Deferred<void, PersistenceError>

/** Releases shards. Those whose entities have stopped within a moment go together. */
const makeHandOver = Effect.fnUntraced(function* (
  storage: Storage,
  locked: Set<string>,
  alone: Alone
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
      concurrency: releasesUnderWay,
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
    const gathered = { shards: [shard], done: yield* Deferred.make<void, PersistenceError>() }
    batch = gathered
    yield* Effect.sleep(gatherMillis).pipe(
      Effect.andThen(
        Effect.suspend(() => {
          batch = undefined
          return alone(releaseBatch(address, gathered.shards))
        })
      ),
      Deferred.into(gathered.done),
      Effect.forkIn(scope)
    )
    yield* Deferred.await(gathered.done)
  })
})

/** The process notes that it is awake for as long as the scope lives. */
const makeDoubt = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const { shardLockExpiration, shardLockRefreshInterval } = yield* ShardingConfig.ShardingConfig
  const [expiration, refreshInterval] = [shardLockExpiration, shardLockRefreshInterval].map(
    (duration) => Duration.toMillis(Duration.fromInputUnsafe(duration))
  )
  const gap = (expiration ?? 0) - (refreshInterval ?? 0) - awakeMillis
  const doubt = new PauseDetector(gap, () => clock.currentTimeMillisUnsafe())
  const { counter } = yield* readings
  counter(
    "svc_cluster_freezes_total",
    "How often the process stood still for so long that its shards may be another's.",
    () => doubt.pauses
  )
  yield* Effect.sync(() => doubt.isUnconfirmed).pipe(
    Effect.repeat(Schedule.spaced(awakeMillis)),
    Effect.forkScoped
  )
  return doubt
})

/** Ownership as the doubt allows it. */
const ownershipOf = (doubt: PauseDetector): Ownership => ({
  hasLease: () => !doubt.isUnconfirmed,
  confirmed: Effect.suspend(() =>
    doubt.isUnconfirmed ? Effect.as(Effect.sleep(confirmMillis), true) : Effect.succeed(false)
  ).pipe(Effect.repeat({ while: (waiting) => waiting }), Effect.asVoid)
})

const make = Effect.gen(function* () {
  const storage = yield* RunnerStorage.RunnerStorage
  const clock = yield* Clock.Clock
  const doubt = yield* makeDoubt
  const locked = new Set<string>()
  const alone: Alone = (yield* Semaphore.make(1)).withPermits(1)
  const handOver = yield* makeHandOver(storage, locked, alone)
  const now = () => clock.currentTimeMillisUnsafe()
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
      const begun = now()
      while (true) {
        const acquired = yield* alone(
          Effect.tap(storage.acquire(address, wanted), (taken) =>
            Effect.sync(() => taken.forEach((shard) => locked.add(shard.toString())))
          )
        )
        if (acquired.length === wanted.length || now() - begun > patienceMillis) return acquired
        yield* Effect.sleep(retryMillis)
      }
    }),
    refresh: (address, shardIds) =>
      Effect.suspend(() => {
        const answered = doubt.beginRefresh()
        return Effect.tap(storage.refresh(address, shardIds), () => Effect.sync(answered))
      }),
    release: handOver,
    releaseAll: (address) => {
      locked.clear()
      return storage.releaseAll(address)
    }
  })

  return Context.make(RunnerStorage.RunnerStorage, runnerStorage).pipe(
    Context.add(Lease, ownershipOf(doubt))
  )
})

/** Decorates the storage below it. */
export const HandoverStorage = Layer.effectContext(make)
