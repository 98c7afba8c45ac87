/**
 * Shard locks and runner list in Postgres, with six additions to Effect Cluster's storage:
 *
 * - {@link Membership} decides at each read of the list which runners are healthy;
 * - after a stall of Postgres the list is read again once all runners had time for a heartbeat, since the
 *   first to send one would get all shards;
 * - a runner that stops stays listed until it has released its shards: others acquire them at once;
 * - shards are released in batches: one by one, a hundred take 0.1 to 0.7 seconds without an owner;
 * - a runner that finds shards locked retries for a moment; Effect Cluster waits for a second;
 * - a runner that was paused does not act as an owner until it has refreshed its locks ({@link Lease}).
 */
import { Clock, Context, Duration, Effect, Layer, Request, RequestResolver, Schedule } from "effect"
import {
  ClusterError,
  type RunnerAddress,
  RunnerStorage,
  type ShardId,
  ShardingConfig,
  SqlRunnerStorage
} from "effect/cluster"
import { SqlClient, type SqlConnection } from "effect/sql"
import { Lease } from "#entities/lease"
import { awaitDatabase, isStartError } from "#server/platform/database-start"
import { readings } from "#server/platform/metrics"
import { durationClocks, monotonicMillis } from "#entities/monotonic"
import { Membership } from "./membership.ts"
import { PauseDetector } from "./pause-detector.ts"

const retryMillis = 30
/** Time for retries of an acquisition, well below the second that Effect Cluster allows for it. */
const acquireMillis = 350
const releaseWindowMillis = 20
/** Timeout of a release, which Effect Cluster repeats if it fails. */
const unlockMillis = 1500
/** Interval of the pause detector, and of a waiter's check for confirmed ownership. */
const awakeMillis = 500
const confirmMillis = 20
/** Gap between two reads of the list that only a stall explains; a heartbeat comes within the pause. */
const stallMillis = 1800
const heartbeatPause = 2000

/** First lock number of the default shard group, as Effect Cluster computes it. */
const firstNumber = 1_000_000

type OnReserve = (connection: SqlConnection.Connection) => void

/** The same client; reports every connection that is reserved from it. */
const observed = (sql: SqlClient.SqlClient, onReserve: OnReserve): SqlClient.SqlClient =>
  new Proxy(sql, {
    get: (client, key) => {
      if (key === "withoutTransforms") return () => observed(client.withoutTransforms(), onReserve)
      if (key !== "reserve") return Reflect.get(client, key)
      return Effect.tap(client.reserve, (connection) => Effect.sync(() => onReserve(connection)))
    }
  })

class Release extends Request.TaggedClass("Release")<
  { readonly shard: ShardId.ShardId },
  void,
  ClusterError.PersistenceError
> {}

/** Effect Cluster's storage; shards whose entities stop within 20 ms are released in one statement. */
export const PostgresStorage = Layer.effect(
  RunnerStorage.RunnerStorage,
  Effect.gen(function* () {
    let session: SqlConnection.Connection | undefined
    const client = observed(yield* SqlClient.SqlClient, (connection) => {
      session = connection
    })
    // Its tables are made, and its session opened, at the start.
    const storage = yield* SqlRunnerStorage.make({}).pipe(
      Effect.provideService(SqlClient.SqlClient, client),
      awaitDatabase,
      Effect.catchIf((error) => !isStartError(error), Effect.die)
    )
    const unlock = Effect.fnUntraced(function* (shards: ReadonlyArray<ShardId.ShardId>) {
      if (session === undefined) return
      const numbers = shards.map(({ id }) => firstNumber + id)
      const unlockOnce = session.executeValuesUnprepared(
        `select pg_advisory_unlock(classid::int, objid::int) from pg_locks
         where locktype = 'advisory' and granted and objsubid = 2
           and pid = pg_backend_pid() and objid in (${numbers.join()})`,
        []
      )
      // An acquisition that timed out and was repeated may hold a lock twice. Postgres counts.
      while ((yield* unlockOnce).length > 0);
    })
    const resolver = RequestResolver.make<Release>((entries) =>
      unlock(entries.map(({ request }) => request.shard)).pipe(
        Effect.timeout(unlockMillis),
        ClusterError.PersistenceError.refail,
        Effect.andThen(
          Effect.forEach(entries, (entry) => Request.succeed(entry, undefined), { discard: true })
        )
      )
    ).pipe(RequestResolver.setDelay(releaseWindowMillis))
    return {
      ...storage,
      release: (_, shard) => Effect.request(new Release({ shard }), resolver)
    }
  })
)

/** A pause detector that is polled for as long as the scope lives. */
const makePauseDetector = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const { shardLockExpiration, shardLockRefreshInterval } = yield* ShardingConfig.ShardingConfig
  const gap =
    Duration.toMillis(shardLockExpiration) -
    Duration.toMillis(shardLockRefreshInterval) -
    awakeMillis
  const detector = new PauseDetector(gap, durationClocks(clock))
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

const make = Effect.gen(function* () {
  const storage = yield* RunnerStorage.RunnerStorage
  const now = monotonicMillis(yield* Clock.Clock)
  const { isEvicted } = yield* Membership
  const detector = yield* makePauseDetector
  let leaving: RunnerAddress.RunnerAddress | undefined
  let listReadAt = Number.POSITIVE_INFINITY

  yield* Effect.addFinalizer(() =>
    leaving === undefined ? Effect.void : Effect.ignore(storage.unregister(leaving))
  )

  const runnerStorage = RunnerStorage.RunnerStorage.of({
    ...storage,
    getRunners: Effect.flatMap(storage.getRunners, (list) => {
      if (now() - listReadAt <= stallMillis) return Effect.succeed(list)
      return Effect.delay(storage.getRunners, heartbeatPause)
    }).pipe(
      Effect.tap(() => Effect.sync(() => (listReadAt = now()))),
      Effect.map((list) => list.map(([runner]) => [runner, !isEvicted(runner.address)] as const))
    ),
    setRunnerHealth: () => Effect.void,
    unregister: (address) =>
      Effect.sync(() => {
        leaving = address
      }),
    acquire: (address, shards) =>
      Effect.suspend(() => {
        const wanted = Array.from(shards)
        const deadline = now() + acquireMillis
        return Effect.repeat(storage.acquire(address, wanted), {
          schedule: Schedule.spaced(retryMillis),
          until: (acquired) => acquired.length === wanted.length || now() > deadline
        }).pipe(Effect.tap(({ length }) => Effect.logInfo(`Acquired ${length} shards`)))
      }),
    refresh: (address, shards) =>
      Effect.suspend(() => {
        const confirm = detector.beginRefresh()
        return Effect.tap(storage.refresh(address, shards), () => Effect.sync(confirm))
      })
  })
  const hasLease = (): boolean => !detector.isUnconfirmed
  const check = { until: Boolean, schedule: Schedule.spaced(confirmMillis) }
  const confirmed = Effect.asVoid(Effect.repeat(Effect.sync(hasLease), check))
  return Context.make(RunnerStorage.RunnerStorage, runnerStorage).pipe(
    Context.add(Lease, { hasLease, confirmed })
  )
})

/** Wraps the runner storage below it. */
export const HandoverStorage = Layer.effectContext(make)
